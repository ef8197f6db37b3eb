//! Bodies and what is found in them.

use quote::ToTokens;

use crate::{Index, Names, Scan, What, without_allows};

/// The calls to other services that `function`, the last one of the file, makes inside transactions.
fn found(text: &str, whole: bool) -> Vec<String> {
    let mut index = Index::default();
    let root = vec!["crate".to_owned()];
    let functions = index.add(syn::parse_str::<syn::File>(text).unwrap().items, &root, &|_| false).functions;
    let function = functions.last().unwrap();
    let names = Names::new(&index, &function.module, function.this.as_ref());
    let whole = whole.then(|| function.signature.ident.to_token_stream());
    let scan = Scan::of(function.body.clone(), Some(&function.signature), &names, whole);
    scan.external().map(|(event, _)| event.name.clone()).collect()
}

fn inside(body: &str) -> Vec<String> {
    found(&format!("async fn place(client: &reqwest::Client, n: u8) {{ {body} }}"), true)
}

#[test]
fn calls_are_found_wherever_they_stand() {
    for (body, expected) in [
        ("reqwest::get(url).await?;", "reqwest::get"),
        ("::reqwest::get(url).await?;", "reqwest::get"),
        ("let r = if a { reqwest::get(url).await } else { b };", "reqwest::get"),
        ("tokio::join!(a(), reqwest::get(url));", "reqwest::get"),
        ("let f = |u| async move { reqwest::get(u).await };", "reqwest::get"),
        ("urls.iter().map(reqwest::blocking::get);", "reqwest::blocking::get"),
        ("client.get(url).send().await?;", "client.get"),
        ("client.clone().get(url).send().await?;", "client.clone().get"),
        ("let again = client.clone(); again.post(url);", "again.post"),
        ("let again: &reqwest::Client = other(); again.post(url);", "again.post"),
        ("let c = reqwest::Client::new(); c.get(url);", "reqwest::Client::new"),
        ("use std::process::Command; Command::new(x);", "Command::new"),
        ("{ use reqwest as web; web::get(url); }", "web::get"),
        ("if let Some(x) = reqwest::get(url).await { y }", "reqwest::get"),
        ("return lapin::Connection::connect(a, b).await;", "lapin::Connection::connect"),
        ("ureq::post::<u8>(url);", "ureq::post"),
        ("proto::greeter_client::GreeterClient::connect(url);", "proto::greeter_client::GreeterClient::connect"),
    ] {
        assert_eq!(inside(body), [expected], "{body}");
    }
}

#[test]
fn what_calls_nobody_is_left_alone() {
    for body in [
        "let x: Result<reqwest::Response, reqwest::Error> = y;",
        "let url = reqwest::Url::parse(a)?;",
        "let get = table.get(n); get(5);",
        "let client = n; client.get(5);",
        "f(reqwest::StatusCode::OK);",
        "match x { reqwest::Error { .. } => 1 }",
        "self::reqwest::get(url);",
        "fn helper() { reqwest::get(url); }",
        "n.reqwest.get(5); a..reqwest;",
        "std::process::exit(1);",
        "log(\"reqwest::get(url)\");",
    ] {
        assert!(inside(body).is_empty(), "{body}: {:?}", inside(body));
    }
}

#[test]
fn fields_of_self_and_of_types_are_followed() {
    let file = "
        use reqwest::Client as Http;
        struct Clients { http: std::sync::Arc<Http>, db: Db }
        struct Service { clients: Clients, http: Http }
        impl Service {
            async fn place(&self, tx: &mut Tx) {
                self.http.get(1); self.clients.http.get(2); self.clients.db.get(3); self.repo.get(4);
            }
        }";
    assert_eq!(found(file, true), ["self.http.get", "self.clients.http.get"]);
}

#[test]
fn clients_are_followed_through_patterns_and_values() {
    for (body, expected) in [
        ("if let Some(c) = &maybe { c.get(url); }", "c.get"),
        ("if let (Some(c), 1) = (maybe.as_ref(), n) { c.get(url); }", ""),
        ("while let Some(c) = maybe.clone() { c.get(url); }", "c.get"),
        ("let Some(c) = maybe else { return }; c.get(url);", "c.get"),
        ("let c = maybe.as_ref().unwrap(); c.get(url);", "c.get"),
        ("match &maybe { Some(c) if n > 1 => c.get(url), None => n.get(url), }", "c.get"),
        ("match maybe.clone() { Some(c) => { c.get(url); } _ => {} } c.get(url);", "c.get"),
        ("for c in &all { c.get(url); } c.get(url);", "c.get"),
        ("for c in all.iter() { c.get(url); }", "c.get"),
        ("let get = reqwest::get; get(url).await;", "reqwest::get"),
        ("self::GLOBAL.get(url);", "self::GLOBAL.get"),
        ("GLOBAL.get(url);", "GLOBAL.get"),
        ("GLOBAL.clients.first.get(url);", ""),
        ("SHARED.http.get(url);", "SHARED.http.get"),
        ("let c = GLOBAL.clone(); c.get(url);", "c.get"),
        ("socket.read(buffer).await;", "socket.read"),
        ("locked.read().await.get(url);", ""),
        ("http::fetch(url);", "http::fetch"),
        ("if maybe.is_some() || all.is_empty() { all.len(); }", ""),
        ("match n { c => c.get(url) }", ""),
        ("for c in 0..n { c.get(url); }", ""),
        ("impl_for!(for c in all);", ""),
    ] {
        let file = format!(
            "static GLOBAL: std::sync::LazyLock<reqwest::Client> = std::sync::LazyLock::new(make);
            static SHARED: Shared = Shared {{ http: reqwest::Client::new() }};
            struct Shared {{ http: reqwest::Client }}
            mod http {{ pub use reqwest::get as fetch; }}
            async fn place(maybe: Option<reqwest::Client>, all: Vec<reqwest::Client>, n: u8, socket: tokio::net::TcpStream) {{ {body} }}"
        );
        let expected: Vec<&str> = Some(expected).filter(|it| !it.is_empty()).into_iter().collect();
        assert_eq!(found(&file, true), expected, "{body}");
    }
}

#[test]
fn clients_that_functions_hand_out_are_followed() {
    let file = "
        mod clients { use reqwest::Client; pub fn http() -> &'static Client { todo() } }
        fn result() -> Result<reqwest::Client, E> { todo() }
        struct Service;
        impl Service {
            fn http(&self) -> &reqwest::Client { todo() }
            fn name(&self) -> String { todo() }
            async fn place(&self, tx: &mut Tx) {
                self.http().get(1); clients::http().clone().get(2); self.name().get(3); result().map(4); self.http();
                clients::http;
            }
        }";
    assert_eq!(found(file, true), ["self.http().get", "clients::http().clone().get"]);
}

#[test]
fn only_transactions_count_outside_of_one() {
    let file = "
        async fn place(bus: &Bus, pool: &Pool, client: reqwest::Client) {
            client.get(1);
            bus.transaction(async |tx| -> Result { client.get(2); Ok(()) }).await?;
            client.get(3);
            let mut tx = pool.begin().await?;
            client.put(4);
            tx.commit().await?;
            client.get(5);
            { let tx = bus.begin().await?; }
            client.get(6);
            bus.transaction_at(Serializable, 5, async move |tx| { reqwest::get(7) });
            bus.transaction(work);
        }";
    assert_eq!(found(file, false), ["client.get", "client.put", "reqwest::get"]);
}

#[test]
fn an_allowance_covers_one_statement_and_is_taken_out() {
    // As text: in tokens, the lint would find what is here on purpose.
    let body = r#"
        #[allow_external_call(reason = "a local daemon")]
        let answer = client.get(url).send().await?;
        if x {
            #[relaybus::allow_external_call]
            reqwest::get(a);
        }
        reqwest::post(b);
    "#;
    let body: proc_macro2::TokenStream = body.parse().unwrap();
    let index = Index::default();
    let names = Names::new(&index, &vec!["crate".to_owned()], None);
    let scan = Scan::of(body.clone(), None, &names, Some(quote::quote!(place)));
    assert_eq!(scan.external().map(|(event, _)| event.name.as_str()).collect::<Vec<_>>(), ["reqwest::post"]);
    let expected = "
        let answer = client.get(url).send().await?;
        if x {
            reqwest::get(a);
        }
        reqwest::post(b);
    ";
    let expected: proc_macro2::TokenStream = expected.parse().unwrap();
    assert_eq!(without_allows(body).to_string(), expected.to_string());
    let reasons: Vec<_> = scan.allowed.iter().map(|allowed| allowed.reason.as_deref()).collect();
    assert_eq!(reasons, [Some("a local daemon"), None]);
}

#[test]
fn calls_of_the_same_crate_and_detached_publishes_are_noted() {
    let mut index = Index::default();
    let file = "
        mod repo { pub struct Repo; impl Repo { pub fn save(&self) {} } }
        use repo::Repo;
        fn helper() {}
        struct S { repo: Repo }
        impl S { fn f(&self, other: &Repo) { helper(); self.g(); Self::h(); self.repo.save(); other.save(); repo::x(); bus.publish_detached(e); } }";
    let root = vec!["crate".to_owned()];
    let functions = index.add(syn::parse_str::<syn::File>(file).unwrap().items, &root, &|_| false).functions;
    let function = functions.last().unwrap();
    let names = Names::new(&index, &root, function.this.as_ref());
    let scan = Scan::of(function.body.clone(), Some(&function.signature), &names, None);
    let shown: Vec<String> = scan
        .events
        .iter()
        .map(|event| match &event.what {
            What::Call(crate::Call::Function(path)) => path.join("::"),
            What::Call(crate::Call::Method(types, name)) => format!("{}.{name}", types[0].join("::")),
            What::Detached => "detached".to_owned(),
            What::External(service) => service.path.to_owned(),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "crate::helper",
            "crate::S.g",
            "crate::S::h",
            "crate::repo::Repo.save",
            "crate::repo::Repo.save",
            "crate::repo::x",
            "detached"
        ]
    );
}
