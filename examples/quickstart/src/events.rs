//! The events: seven that are typed with the fields their handlers use, and one for every other webhook.
//!
//! An event is a serde type with a name. Its `key` gives it an order: the events of one repository reach each handler one
//! at a time, in the order in which they were committed.

use relaybus::store::AnyStore;
use relaybus::{AnyTransaction, Event, Publish, RelayBus};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("github.push.v1", key = repository.full_name)]
pub struct Pushed {
    #[serde(rename = "ref")]
    pub branch: String,
    pub commits: Vec<Commit>,
    pub pusher: Pusher,
    pub repository: Repository,
}

#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("github.issues.opened.v1", key = repository.full_name)]
pub struct IssueOpened {
    pub issue: Issue,
    pub sender: User,
    pub repository: Repository,
}

#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("github.issue_comment.created.v1", key = repository.full_name)]
pub struct IssueCommented {
    pub issue: Issue,
    pub comment: Comment,
    pub repository: Repository,
}

#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("github.pull_request.opened.v1", key = repository.full_name)]
pub struct PullRequestOpened {
    pub pull_request: Issue,
    pub sender: User,
    pub repository: Repository,
}

#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("github.release.published.v1", key = repository.full_name)]
pub struct ReleasePublished {
    pub release: Release,
    pub repository: Repository,
}

#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("github.star.created.v1", key = repository.full_name)]
pub struct Starred {
    pub sender: User,
    pub repository: Repository,
}

#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("github.fork.v1", key = repository.full_name)]
pub struct Forked {
    pub forkee: Repository,
    pub repository: Repository,
}

/// A webhook that has no type of its own here. Without a repository it has no key, and so no order.
#[derive(Event, Clone, Debug, Serialize, Deserialize)]
#[event("github.other.v1", key = repository)]
pub struct Other {
    /// The type that the line gives.
    pub kind: String,
    /// The payload's text, byte for byte.
    pub payload: String,
    pub repository: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Repository {
    pub full_name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct User {
    pub login: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pusher {
    pub name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Commit {
    pub id: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Issue {
    pub number: u64,
    pub title: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comment {
    pub user: User,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Release {
    pub tag_name: String,
}

/// A webhook as the event it is published as.
#[derive(Clone, Debug)]
pub enum Webhook {
    Pushed(Pushed),
    IssueOpened(IssueOpened),
    IssueCommented(IssueCommented),
    PullRequestOpened(PullRequestOpened),
    ReleasePublished(ReleasePublished),
    Starred(Starred),
    Forked(Forked),
    Other(Other),
}

impl Webhook {
    /// The event of a line. A payload without the fields of its type is an [`Other`] too: no line is turned away.
    pub fn read(kind: &str, payload: &str, repository: &str) -> Self {
        let typed = match kind {
            "github.push.v1" => decode(payload).map(Self::Pushed),
            "github.issues.opened.v1" => decode(payload).map(Self::IssueOpened),
            "github.issue_comment.created.v1" => decode(payload).map(Self::IssueCommented),
            "github.pull_request.opened.v1" => decode(payload).map(Self::PullRequestOpened),
            "github.release.published.v1" => decode(payload).map(Self::ReleasePublished),
            "github.star.created.v1" => decode(payload).map(Self::Starred),
            "github.fork.v1" => decode(payload).map(Self::Forked),
            _ => None,
        };
        let repository = (!repository.is_empty()).then(|| repository.to_owned());
        typed.unwrap_or_else(|| Self::Other(Other { kind: kind.to_owned(), payload: payload.to_owned(), repository }))
    }

    /// Publishes it in the transaction of `tx`. Nothing happens until the returned builder is awaited.
    pub fn publish<'a>(self, bus: &'a RelayBus, tx: &'a mut AnyTransaction) -> Publish<'a, AnyStore> {
        match self {
            Self::Pushed(event) => bus.publish(tx, event),
            Self::IssueOpened(event) => bus.publish(tx, event),
            Self::IssueCommented(event) => bus.publish(tx, event),
            Self::PullRequestOpened(event) => bus.publish(tx, event),
            Self::ReleasePublished(event) => bus.publish(tx, event),
            Self::Starred(event) => bus.publish(tx, event),
            Self::Forked(event) => bus.publish(tx, event),
            Self::Other(event) => bus.publish(tx, event),
        }
    }
}

/// The event, when the payload has its fields and its key can be one.
fn decode<E: Event + DeserializeOwned>(payload: &str) -> Option<E> {
    serde_json::from_str(payload).ok().filter(|event: &E| event.ordering_key().is_ok())
}
