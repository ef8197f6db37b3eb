//! The handlers: async functions with `#[consumer]`, which `discover_handlers` finds.
//!
//! 1. `activity.*` counts every event in a projection. It is transactional: what it writes commits together with the
//!    completion of its delivery, so it takes effect exactly once, whatever happens.
//! 2. `announce` tells a chat room about pushes. The room does not answer at times, so it is tried again. It is not
//!    transactional: after a crash it may announce a push twice.
//! 3. `archive` keeps the other webhooks and refuses large ones for good: these end in the dead letters.
//!
//! Each writes a line of the order log, from which the program checks itself at the end.

use relaybus::{AnyTransaction, BoxError, Envelope, Error, Event, HandlerContext, RelayBus, Result, State, consumer};

use crate::events::{Forked, IssueCommented, IssueOpened, Other, PullRequestOpened, Pushed, ReleasePublished, Starred};
use crate::tables::Ledger;

// A service that knows its database takes `tx: &mut SqliteConnection` and runs its own SQL through it. This program runs
// on every store, so its handlers take the transaction of any store, and `Ledger` has the SQL.

#[consumer(Pushed, id = "activity.push", transactional)]
async fn push(event: &Pushed, ledger: Ledger, tx: &mut AnyTransaction) -> Result {
    let Pushed { pusher, commits, branch, .. } = event;
    let note = format!("{} pushed {} commits to {branch}", pusher.name, commits.len());
    ledger.count(tx, Pushed::TYPE.as_str(), note).await
}

#[consumer(IssueOpened, id = "activity.issue", transactional)]
async fn issue(event: &IssueOpened, ledger: Ledger, tx: &mut AnyTransaction) -> Result {
    let IssueOpened { issue, sender, .. } = event;
    let note = format!("{} opened issue {}: {}", sender.login, issue.number, issue.title);
    ledger.count(tx, IssueOpened::TYPE.as_str(), note).await
}

#[consumer(IssueCommented, id = "activity.comment", transactional)]
async fn comment(event: &IssueCommented, ledger: Ledger, tx: &mut AnyTransaction) -> Result {
    let note = format!("{} commented on issue {}", event.comment.user.login, event.issue.number);
    ledger.count(tx, IssueCommented::TYPE.as_str(), note).await
}

#[consumer(PullRequestOpened, id = "activity.pull_request", transactional)]
async fn pull_request(event: &PullRequestOpened, ledger: Ledger, tx: &mut AnyTransaction) -> Result {
    let PullRequestOpened { pull_request, sender, .. } = event;
    let note = format!("{} asks to merge {}: {}", sender.login, pull_request.number, pull_request.title);
    ledger.count(tx, PullRequestOpened::TYPE.as_str(), note).await
}

#[consumer(ReleasePublished, id = "activity.release", transactional)]
async fn release(event: &ReleasePublished, ledger: Ledger, tx: &mut AnyTransaction) -> Result {
    let note = format!("released {}", event.release.tag_name);
    ledger.count(tx, ReleasePublished::TYPE.as_str(), note).await
}

#[consumer(Starred, id = "activity.star", transactional)]
async fn star(event: &Starred, ledger: Ledger, tx: &mut AnyTransaction) -> Result {
    let note = format!("starred by {}", event.sender.login);
    ledger.count(tx, Starred::TYPE.as_str(), note).await
}

#[consumer(Forked, id = "activity.fork", transactional)]
async fn fork(event: &Forked, ledger: Ledger, tx: &mut AnyTransaction) -> Result {
    let note = format!("forked to {}", event.forkee.full_name);
    ledger.count(tx, Forked::TYPE.as_str(), note).await
}

#[consumer(Other, id = "activity.other", transactional)]
async fn other(event: &Other, ledger: Ledger, tx: &mut AnyTransaction) -> Result {
    let note = format!("a payload of {} bytes", event.payload.len());
    ledger.count(tx, &event.kind, note).await
}

#[consumer(Pushed, id = "announce", retry(attempts = 10, initial_delay = "20ms", max_delay = "1s"), timeout = "30s")]
async fn announce(
    event: Envelope<Pushed>,
    context: &HandlerContext,
    ledger: Ledger,
    bus: State<RelayBus>,
) -> Result<(), BoxError> {
    // Every second push meets a room that does not answer at first. An error asks for another attempt, a little later.
    let is_unlucky = event.id.as_str().ends_with(['0', '2', '4', '6', '8']);
    if is_unlucky && context.attempt() == 1 {
        return Err("the chat room does not answer".into());
    }
    let note = format!("announced {}", event.payload.branch);
    bus.transaction(async |tx| ledger.log(tx, note).await).await?;
    Ok(())
}

/// The longest payload that the archive takes, in bytes.
pub const ARCHIVE_LIMIT: usize = 8_000;

#[consumer(Other, id = "archive", transactional)]
async fn archive(event: &Other, ledger: Ledger, tx: &mut AnyTransaction) -> Result {
    let bytes = event.payload.len();
    if bytes > ARCHIVE_LIMIT {
        // No other attempt will find it smaller.
        return Err(Error::non_retryable(format!("the archive takes {ARCHIVE_LIMIT} bytes, not {bytes}")));
    }
    ledger.log(tx, format!("archived {bytes} bytes")).await
}
