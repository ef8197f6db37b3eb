//! `cargo relaybus catalog` on a package with two catalogs: what it says, what it writes, and its exit codes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

const RELAYBUS: &str = env!("CARGO_BIN_EXE_relaybus");

fn shelf() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/shelf")
}

/// A folder with snapshots of a test's own, deleted at its end.
struct Schemas(PathBuf);

/// What a run said and how it ended.
#[derive(Debug, PartialEq)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Schemas {
    fn empty(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("relaybus-shelf-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        // The shown paths are those that the system has for it.
        Self(path.canonicalize().unwrap())
    }

    /// The snapshots of the package as it is.
    fn committed(name: &str) -> Self {
        let schemas = Self::empty(name);
        for file in ["books.json", "readers.json"] {
            fs::copy(shelf().join("schemas").join(file), schemas.0.join(file)).unwrap();
        }
        schemas
    }

    fn file(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.0.join(name)).unwrap()).unwrap()
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut file = self.file(name);
        change(&mut file);
        fs::write(self.0.join(name), format!("{file:#}\n")).unwrap();
    }

    /// As if readers had not been asked for their name yet, and a returned book had always been good.
    fn make_older(&self) {
        self.change("books.json", |file| {
            let lent = &mut file["events"]["book.lent.v1"]["payload"];
            lent["properties"].as_object_mut().unwrap().remove("reader");
            for set in ["required", "x-always-written"] {
                lent[set].as_array_mut().unwrap().retain(|field| field != "reader");
            }
            let condition = &mut file["events"]["book.returned.v1"]["payload"]["$defs"]["Condition"]["oneOf"];
            condition.as_array_mut().unwrap().retain(|value| value["const"] == "good");
        });
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let manifest = shelf().join("Cargo.toml");
        let mut command = Command::new(RELAYBUS);
        command
            .arg("catalog")
            .args(arguments)
            .args(["--package", "relaybus-cli-shelf", "--manifest-path"])
            .arg(manifest);
        let output = command.args(["--", "--offline"]).env("RELAYBUS_TEST_SHELF", &self.0).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(self.0.to_str().unwrap(), "schemas");
        Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").arg("-C").arg(&self.0).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Schemas {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const BREAKING: &str = "  breaking: BookLent (book.lent.v1): the required field `reader` was added
      consumers of this version that read events stored before the change: they cannot decode those events
      publishers that are not upgraded: consumers of this version cannot decode what they send
";
const CAUTION: &str = "  caution: BookReturned (book.returned.v1): the value `damaged` of `condition` was added
      consumers already deployed that read new events: they cannot decode events that have it: deploy them first, before anybody publishes it
";

const GONE: &str = "  breaking: ReaderJoined (reader.joined.v1): the event was removed
      consumers already deployed that read new events: they no longer receive the event
      consumers of this version that read events stored before the change: nothing handles those events
      publishers that are not upgraded: nothing handles what they send
";

#[test]
fn unchanged_catalogs_pass() {
    let schemas = Schemas::committed("unchanged");
    let checked = schemas.run(&["check", "--strict"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    assert_eq!(
        checked.stdout,
        "relaybus-cli-shelf: BookEvents is unchanged (schemas/books.json)
relaybus-cli-shelf: readers is unchanged (schemas/readers.json)
relaybus catalog: 2 catalogs, 0 failing; 0 breaking changes, 0 to roll out with care, 0 compatible
"
    );
}

#[test]
fn a_catalog_without_a_snapshot_fails_until_it_is_written() {
    let schemas = Schemas::empty("new");
    let checked = schemas.run(&["check", "--catalog", "readers"]);
    assert_eq!(checked.code, Some(1), "{}", checked.stderr);
    assert!(checked.stdout.starts_with(
        "relaybus-cli-shelf: readers has no snapshot yet: `cargo relaybus catalog update` writes it (schemas/readers.json)\n"
    ));
    let updated = schemas.run(&["update"]);
    assert_eq!(
        (updated.code, updated.stdout.as_str()),
        (Some(0), "wrote schemas/books.json\nwrote schemas/readers.json\nrelaybus catalog: 2 of 2 snapshots written\n")
    );
    for file in ["books.json", "readers.json"] {
        assert_eq!(fs::read(schemas.0.join(file)).unwrap(), fs::read(shelf().join("schemas").join(file)).unwrap());
    }
    assert_eq!(schemas.run(&["check", "--strict"]).code, Some(0));
}

#[test]
fn a_breaking_change_fails_and_is_written_only_when_accepted() {
    let schemas = Schemas::committed("breaking");
    schemas.make_older();
    let older = schemas.file("books.json");
    let expected = format!(
        "relaybus-cli-shelf: BookEvents breaks what its snapshot promises (schemas/books.json)\n{BREAKING}{CAUTION}\
         relaybus-cli-shelf: readers is unchanged (schemas/readers.json)\n\
         relaybus catalog: 2 catalogs, 1 failing; 1 breaking change, 1 to roll out with care, 0 compatible\n"
    );
    let checked = schemas.run(&["check"]);
    assert_eq!((checked.code, checked.stdout), (Some(1), expected));

    let refused = schemas.run(&["update"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stdout.contains(BREAKING) && refused.stdout.contains("not written; `--accept`"),
        "{}",
        refused.stdout
    );
    assert_eq!(schemas.file("books.json"), older);

    let accepted = schemas.run(&["update", "--accept"]);
    assert_eq!(accepted.stdout, "wrote schemas/books.json\nrelaybus catalog: 1 of 2 snapshots written\n");
    assert_eq!(schemas.run(&["check", "--strict"]).code, Some(0));
}

#[test]
fn json_has_each_change_with_whom_it_concerns() {
    let schemas = Schemas::committed("json");
    schemas.make_older();
    let report: Value = serde_json::from_str(&schemas.run(&["check", "--json"]).stdout).unwrap();
    let books = &report["catalogs"][0];
    assert_eq!((&books["catalog"], &books["state"]), (&json!("BookEvents"), &json!("breaking")));
    assert_eq!(
        books["changes"][0],
        json!({
            "severity": "breaking",
            "event": "BookLent (book.lent.v1)",
            "what": "the required field `reader` was added",
            "affects": [
                { "who": "stored_events", "why": "they cannot decode those events" },
                { "who": "deployed_publishers", "why": "consumers of this version cannot decode what they send" },
            ],
        })
    );
    assert_eq!(report["catalogs"][1]["state"], "unchanged");
}

#[test]
fn a_change_to_roll_out_with_care_passes_and_fails_when_strict() {
    let schemas = Schemas::committed("care");
    schemas.change("books.json", |file| {
        let condition = &mut file["events"]["book.returned.v1"]["payload"]["$defs"]["Condition"]["oneOf"];
        condition.as_array_mut().unwrap().retain(|value| value["const"] == "good");
    });
    let checked = schemas.run(&["check"]);
    assert_eq!(checked.code, Some(0));
    let words = "BookEvents breaks nobody; `cargo relaybus catalog update` brings its snapshot up to date";
    assert!(checked.stdout.contains(words) && checked.stdout.contains(CAUTION), "{}", checked.stdout);
    assert_eq!(schemas.run(&["check", "--strict"]).code, Some(1));
    assert_eq!(schemas.run(&["update"]).code, Some(0));
    assert_eq!(schemas.run(&["check", "--strict"]).code, Some(0));
}

#[test]
fn an_earlier_revision_is_what_a_release_promised() {
    let schemas = Schemas::committed("revision");
    schemas.make_older();
    fs::remove_file(schemas.0.join("readers.json")).unwrap();
    for arguments in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "release"], &["tag", "v1"]]
    {
        schemas.git(arguments);
    }
    assert_eq!(schemas.run(&["update", "--accept"]).code, Some(0));
    assert_eq!(schemas.run(&["check"]).code, Some(0));
    let checked = schemas.run(&["check", "--against", "v1"]);
    assert_eq!(checked.code, Some(1), "{}", checked.stderr);
    assert_eq!(
        checked.stdout,
        format!(
            "relaybus-cli-shelf: BookEvents breaks what it promised at v1 (schemas/books.json)\n{BREAKING}{CAUTION}\
             relaybus-cli-shelf: readers is new since v1 (schemas/readers.json)\n\
             relaybus catalog: 2 catalogs, 1 failing; 1 breaking change, 1 to roll out with care, 0 compatible\n"
        )
    );
    let unknown = schemas.run(&["check", "--against", "v2"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.ends_with("error: git knows no revision `v2` in `schemas`: fetch it first\n"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn a_snapshot_that_was_moved_is_still_what_a_release_promised_and_one_that_is_gone_breaks() {
    let schemas = Schemas::committed("moved");
    schemas.make_older();
    fs::rename(schemas.0.join("books.json"), schemas.0.join("library.json")).unwrap();
    let lost = fs::read_to_string(schemas.0.join("readers.json")).unwrap().replace("\"readers\"", "\"guests\"");
    fs::write(schemas.0.join("guests.json"), lost).unwrap();
    for arguments in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "release"]] {
        schemas.git(arguments);
    }
    fs::remove_file(schemas.0.join("library.json")).unwrap();
    fs::remove_file(schemas.0.join("guests.json")).unwrap();
    assert_eq!(schemas.run(&["update"]).code, Some(0));
    let checked = schemas.run(&["check", "--against", "HEAD"]);
    assert_eq!(checked.code, Some(1), "{}", checked.stderr);
    assert_eq!(
        checked.stdout,
        format!(
            "relaybus-cli-shelf: BookEvents breaks what it promised at HEAD (schemas/books.json)\n{BREAKING}{CAUTION}\
             relaybus-cli-shelf: readers is unchanged (schemas/readers.json)\n\
             guests is gone since HEAD (schemas/guests.json)\n{GONE}\
             relaybus catalog: 3 catalogs, 2 failing; 2 breaking changes, 1 to roll out with care, 0 compatible\n"
        )
    );
    let one = schemas.run(&["check", "--against", "HEAD", "--catalog", "readers", "--json"]);
    let report: Value = serde_json::from_str(&one.stdout).unwrap();
    assert_eq!((one.code, report["catalogs"].as_array().unwrap().len()), (Some(0), 1), "{report}");
}

#[test]
fn line_breaks_of_a_checkout_change_nothing() {
    let schemas = Schemas::committed("breaks");
    for file in ["books.json", "readers.json"] {
        let text = fs::read_to_string(schemas.0.join(file)).unwrap();
        fs::write(schemas.0.join(file), text.replace('\n', "\r\n")).unwrap();
    }
    assert_eq!(schemas.run(&["check", "--strict"]).code, Some(0));
    let updated = schemas.run(&["update"]);
    assert_eq!(updated.stdout, "relaybus catalog: 0 of 2 snapshots written\n");
}

#[test]
fn schemas_are_printed_or_written() {
    let schemas = Schemas::empty("export");
    let printed = schemas.run(&["export", "json-schema", "--catalog", "readers"]);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let schema: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(schema["$defs"]["ReaderJoined"]["required"], json!(["name"]));

    let several = schemas.run(&["export", "asyncapi"]);
    assert_eq!(several.code, Some(2));
    let words = "error: there are several catalogs, `BookEvents`, `readers`: choose one with `--catalog` or `--package`, or give `--out`\n";
    assert!(several.stderr.ends_with(words), "{}", several.stderr);

    let folder = schemas.0.join("out");
    let written = schemas.run(&["export", "asyncapi", "--out", folder.to_str().unwrap()]);
    assert_eq!(written.stdout, "wrote schemas/out/BookEvents.asyncapi.json\nwrote schemas/out/readers.asyncapi.json\n");
    let document = schemas.file("out/BookEvents.asyncapi.json");
    assert_eq!(
        (&document["asyncapi"], &document["info"]["version"]),
        (&json!("3.0.0"), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(document["components"]["messages"]["BookReturned"]["name"], "Book Returned");
}

#[test]
fn what_is_not_there_is_said() {
    let schemas = Schemas::committed("unknown");
    let catalog = schemas.run(&["check", "--catalog", "Readers"]);
    assert_eq!(catalog.code, Some(2));
    let words = "error: no test has the catalog `Readers`: add it to a `relaybus_testing::catalog_snapshots!`\n";
    assert!(catalog.stderr.ends_with(words), "{}", catalog.stderr);
    let package = schemas.run(&["check", "--package", "shelves"]);
    assert_eq!(package.code, Some(2));
    assert!(package.stderr.ends_with("error: the workspace has no package `shelves`\n"), "{}", package.stderr);
    fs::write(schemas.0.join("readers.json"), "{}").unwrap();
    let broken = schemas.run(&["check"]);
    assert_eq!(broken.code, Some(2));
    assert!(broken.stderr.contains("this is not the snapshot of a catalog"), "{}", broken.stderr);
    assert_eq!(schemas.run(&["update"]).code, Some(2));
    assert_eq!(schemas.run(&["update", "--accept"]).code, Some(0));
    assert_eq!(schemas.run(&["check"]).code, Some(0));
}
