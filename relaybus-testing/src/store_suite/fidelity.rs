//! Fidelity: what goes in comes out, byte for byte.

use relaybus::store::{AppendOutcome, Settled};
use relaybus::{EventId, Headers, OrderingKey, RawPayload};

use super::StoreFactory;
use super::kit::{Draft, Rig, at, event, handler, ids, sorted_ids};

/// Stores the drafts, claims them, and expects to get back what was stored.
async fn round_trip<F: StoreFactory>(f: &F, drafts: Vec<Draft>) {
    let rig = Rig::open(f).await;
    for draft in &drafts {
        let outcome = rig.append([draft.clone()], at(0)).await;
        assert_eq!(outcome, [AppendOutcome::Stored { deliveries: 1 }], "{:.200}", format!("{:?}", draft.envelope));
    }
    let mut worker = rig.worker(&["h"], at(1)).await;
    let claimed = worker.drain(at(1)).await;
    assert_eq!(claimed.len(), drafts.len());
    for draft in &drafts {
        let got = claimed.iter().find(|claimed| claimed.event.id == draft.envelope.id).expect("it comes back");
        assert!(got.event.payload.as_str() == draft.envelope.payload.as_str(), "payload of {}", draft.envelope.id);
        assert!(got.event.headers.as_json() == draft.envelope.headers.as_json(), "headers of {}", draft.envelope.id);
        assert!(*got.event == draft.envelope, "{:.400} for {:.400}", format!("{:?}", got.event), format!("{draft:?}"));
        assert!(got.lease.key == draft.envelope.key && got.lease.event_id == draft.envelope.id, "its lease");
    }
    rig.close().await;
}

/// Payload text comes back byte for byte: key order, spacing, number spelling, duplicates, escapes.
pub async fn payloads_come_back_byte_for_byte<F: StoreFactory>(f: &F) {
    let texts = [
        r#"{"b":1,"a":2,"C":{"z":[],"y":{}}}"#,
        r#"{"n":1.0,"m":1.00,"e":1e5,"E":1E+05,"z":-0,"t":0.10}"#,
        r#"{"big":123456789012345678901234567890,"max":18446744073709551615,"fine":0.1000000000000000055511151231257827}"#,
        r#"{"a":1,"a":2,"a":null}"#,
        "{ \"a\" :\t1 ,\n\r \"b\":[ 1 , 2 ] }",
        r#"{"é":"\u00e9","slash":"\/","quote":"\"\\","tab":"\t\b\f\n\r"}"#,
        "\"😀 \u{202e}rtl\u{202c} \u{feff} \u{2028} \u{10ffff} ÅÅ 中文\"",
        r#""\ud83d\ude00 \u0001 \u007f""#,
        r#""'; DROP TABLE events; -- $1 ?1 :a @b %s {} [x] `x`""#,
        "null",
        "true",
        "0",
        "\"\"",
        "[]",
        "{}",
        " 1 ",
    ];
    let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let drafts = texts.iter().copied().chain([nested.as_str()]);
    round_trip(f, drafts.enumerate().map(|(n, text)| event(&format!("e{n:02}")).payload(text)).collect()).await;
}

/// A payload of a megabyte comes back byte for byte.
pub async fn a_large_payload_comes_back<F: StoreFactory>(f: &F) {
    let words: String = (0..100_000).map(|n| format!("wörd{n} ")).collect();
    let text = serde_json::Value::from(words).to_string();
    assert!(text.len() > 1_000_000);
    round_trip(f, vec![event("big").payload(&text), event("big-keyed").key("k").payload(&text)]).await;
}

/// Headers come back byte for byte, also when there are thousands.
pub async fn headers_come_back_byte_for_byte<F: StoreFactory>(f: &F) {
    let mut drafts: Vec<Draft> = (0..5).map(|n| event(&format!("e{n}"))).collect();
    drafts[1].envelope.headers =
        Headers::new([("z", "1"), ("a", "it's \"quoted\"\n\t\\"), ("ünï", "😀"), ("empty", "")]).unwrap();
    drafts[2].envelope.headers = Headers::stored("{ \"b\" : \"1\",\"a\":\"\\u0041\" }".to_owned());
    drafts[3].envelope.headers =
        Headers::new((0..10_000).map(|n| (format!("name-{n}"), format!("value {n}")))).unwrap();
    drafts[4].envelope.headers = Headers::new([("long", "x".repeat(200_000))]).unwrap();
    round_trip(f, drafts).await;
}

/// Ids with quotes, line breaks and any other text come back, and are distinct by their bytes.
pub async fn ids_are_any_text<F: StoreFactory>(f: &F) {
    let long = "i".repeat(1_024);
    let almost = format!("{}j", "i".repeat(1_023));
    let texts = [
        "it's \"quoted\"",
        "line\nbreak\r\n\ttab",
        "a",
        "A",
        "a ",
        " a",
        "%",
        "_",
        "\\",
        "$1",
        "?",
        "#",
        "h#a",
        "é",
        "e\u{301}",
        "😀",
        "0",
        "00",
        "null",
        "01890a5d-ac96-774b-bcce-b302099a8057",
        "01890A5D-AC96-774B-BCCE-B302099A8057",
        long.as_str(),
        almost.as_str(),
    ];
    round_trip(f, texts.iter().map(|text| event(text)).collect()).await;
}

/// Keys are any text up to 64 KiB, and distinct by their bytes: nothing is folded, trimmed or cut.
pub async fn keys_are_any_text<F: StoreFactory>(f: &F) {
    let long = "k".repeat(64 * 1024);
    let almost = format!("{}l", "k".repeat(64 * 1024 - 1));
    let wide = "😀".repeat(16 * 1024);
    let texts = [
        "k",
        "K",
        "k ",
        " k",
        "é",
        "e\u{301}",
        "it's \"quoted\"\n",
        "%",
        "_",
        "\\",
        "#",
        "0",
        "null",
        &long,
        &almost,
        &wide,
    ];
    let rig = Rig::open(f).await;
    for (n, key) in texts.iter().enumerate() {
        rig.append([event(&format!("first{n:02}")).key(key), event(&format!("second{n:02}")).key(key)], at(0)).await;
    }
    let mut worker = rig.worker(&["h"], at(1)).await;
    let heads = worker.claim_all(texts.len(), at(1)).await;
    let right: Vec<String> = (0..texts.len()).map(|n| format!("first{n:02}")).collect();
    assert_eq!(sorted_ids(&heads), right, "each key has a head of its own");
    for head in &heads {
        let n: usize = head.event.id.as_str()["first".len()..].parse().unwrap();
        assert!(head.event.key.as_ref().is_some_and(|key| key.as_str() == texts[n]), "the key of {}", head.event.id);
        assert_eq!(worker.complete(head, at(2)).await, Settled::Applied);
    }
    assert_eq!(worker.drain(at(3)).await.len(), texts.len());
    rig.close().await;
}

/// Handler ids with quotes, blanks and other letters are distinct by their bytes.
pub async fn handler_ids_are_any_text<F: StoreFactory>(f: &F) {
    let long = "h".repeat(255);
    let names = ["h", "H", "h ", "it's \"it\"", "%", "_", "relaybus.transport:kafka:orders", "ünï", "$1", "\\", &long];
    let rig = Rig::open(f).await;
    rig.append([event("e1").to(&names), event("e2").key("k").to(&names)], at(0)).await;
    for name in names {
        let mut worker = rig.worker(&[name], at(1)).await;
        let done = worker.drain(at(1)).await;
        assert_eq!(sorted_ids(&done), ["e1", "e2"], "of `{name}`");
        assert!(done.iter().all(|claimed| claimed.lease.handler == handler(name)));
        worker.close(at(1)).await;
    }
    rig.close().await;
}

/// Everything beside the payload comes back too.
pub async fn envelopes_come_back_whole<F: StoreFactory>(f: &F) {
    let mut full = event("full").key("order-1").event_type("A.b_c:d/e-f.v1");
    full.envelope.source = "svc 'ü' \"x\"".into();
    full.envelope.correlation_id = "corr-😀\n".into();
    full.envelope.causation_id = Some("cause-'1'".into());
    full.envelope.occurred_at = at(-86_400);
    let mut other = event("other");
    other.envelope.source = "".into();
    other.envelope.correlation_id = "".into();
    other.envelope.causation_id = Some("other".into());
    let longest = event("longest").event_type(&"t".repeat(255));
    round_trip(f, vec![event("plain"), full, other, longest]).await;
}

/// NUL and lone surrogates, which not every store can keep, never reach a store.
pub async fn nul_is_refused_before_the_store<F: StoreFactory>(f: &F) {
    for bad in [r#""\u0000""#, r#"{"a\u0000b":1}"#, r#""\ud800""#, r#""\udc00""#] {
        assert_eq!(RawPayload::new(bad).unwrap_err().code(), "RELAYBUS_INVALID_ENVELOPE", "{bad}");
    }
    assert_eq!(EventId::new("a\0").unwrap_err().code(), "RELAYBUS_CONFIGURATION");
    assert_eq!(OrderingKey::new("a\0").unwrap_err().code(), "RELAYBUS_CONFIGURATION");
    assert_eq!(Headers::new([("a", "\0")]).unwrap_err().code(), "RELAYBUS_CONFIGURATION");
    round_trip(f, vec![event("e1").payload(r#""\\u0000 \\ud800""#)]).await;
}

/// What is claimed again after a failure or by another worker is the same event still.
pub async fn a_redelivery_is_the_same_event<F: StoreFactory>(f: &F) {
    let rig = Rig::open(f).await;
    let mut draft = event("e1").key("k").payload(r#"{"b":1.0,"a":[1e2]}"#);
    draft.envelope.headers = Headers::new([("z", "1"), ("a", "2")]).unwrap();
    rig.append([draft.clone(), event("e2").key("k")], at(0)).await;
    let mut worker = rig.worker(&["h"], at(1)).await;
    for _ in 0..3 {
        let claimed = worker.claim_event("e1", at(1)).await;
        assert_eq!(*claimed.event, draft.envelope);
        worker.settle(&claimed.lease, super::kit::again(at(1)), at(1)).await;
    }
    assert_eq!(ids(&worker.drain(at(2)).await), ["e1", "e2"]);
    rig.close().await;
}
