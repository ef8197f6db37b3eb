//! What the macros write, as files beside this one: a change of generated code shows in a review, and its size is bounded.
//!
//! `UPDATE_EXPANSIONS=1 cargo test -p relaybus-macros` writes the files anew.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use proc_macro2::TokenStream;
use quote::quote;

/// Most lines of one consumer's expansion, its own function apart.
const CONSUMER_LINES: usize = 60;

fn formatted(tokens: &TokenStream) -> String {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config", "max_width=120,use_small_heuristics=Max"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    rustfmt.stdin.take().unwrap().write_all(tokens.to_string().as_bytes()).unwrap();
    let output = rustfmt.wait_with_output().unwrap();
    assert!(output.status.success(), "rustfmt refuses {tokens}");
    String::from_utf8(output.stdout).unwrap()
}

fn compare(name: &str, tokens: &TokenStream) -> String {
    let expansion = formatted(tokens);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/expansions").join(name);
    if std::env::var_os("UPDATE_EXPANSIONS").is_some() {
        std::fs::write(&path, &expansion).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == expansion, "{name} is out of date; the expansion is now:\n{expansion}");
    expansion
}

#[test]
fn event() {
    let expansion = crate::event::expand(quote! {
        #[event("order.placed.v1", key = customer.id, validate = check)]
        struct OrderPlaced<T> {
            customer: Customer,
            details: T,
        }
    });
    compare("event.expansion", &expansion);
}

#[test]
fn consumer() {
    let function = quote! {
        pub(crate) async fn ship<'a>(event: &'a Envelope<OrderPlaced>, mailer: State<Mailer>, tx: &mut Db) -> Result<(), Late> {}
    };
    let settings = quote! {
        OrderPlaced, id = "shipping.ship", transactional, timeout = "30s",
        retry(attempts = 5, initial_delay = "2s", factor = 2.0, max_delay = "5m"), concurrency = 4
    };
    let expansion = compare("consumer.expansion", &crate::consumer::expand(settings, function.clone()));
    let added = expansion.lines().count() - formatted(&function).lines().count();
    assert!(added <= CONSUMER_LINES, "the expansion has {added} lines, at most {CONSUMER_LINES} are wanted");
}

#[test]
fn consumers() {
    let expansion = crate::consumers::expand(
        TokenStream::new(),
        quote! {
            impl Shipping {
                #[consumer(OrderPlaced)]
                async fn on_placed(&self, event: OrderPlaced) {}
            }
        },
    );
    compare("consumers.expansion", &expansion);
}

#[test]
fn handlers() {
    let list = crate::handlers::expand(quote!([relaybus] ship, billing::record, Archive<u8>));
    compare("handlers.expansion", &quote!(fn list() -> HandlerList<Memory> { #list }));
}

#[test]
fn transaction() {
    let expansion = crate::transaction::expand(
        quote!(isolation = "serializable", attempts = 5),
        quote! {
            pub(crate) async fn place(&self, tx: &mut PgTransaction, order: &Order) -> Result<OrderId> {
                self.orders.insert(tx, order).await
            }
        },
    );
    compare("transaction.expansion", &expansion);
}

#[test]
fn catalog() {
    let expansion = crate::catalog::expand(
        quote!(name = "orders"),
        quote! {
            pub enum OrderEvents {
                OrderPlaced(OrderPlaced),
                #[wire("Order Shipped")]
                OrderShipped(OrderShipped),
            }
        },
    );
    compare("catalog.expansion", &expansion);
}

#[test]
fn consumers_of_a_catalog() {
    let expansion = crate::consumers::expand(
        quote!(OrderEvents, prefix = "shipping", concurrency = 4),
        quote!(impl OrderEventsTxHandlers<Db> for Shipping {}),
    );
    compare("consumers_of_a_catalog.expansion", &expansion);
}

#[test]
fn module() {
    let expansion = crate::contract::expand(quote! {
        [relaybus]
        name: pub shipping,
        consumes: [OrderEvents::{OrderPlaced}, UserEvents],
        produces: [BillingEvents],
        handlers: [ship, billing::Billing],
    });
    compare("module.expansion", &expansion);
}

#[test]
fn catalog_with_schemas() {
    let expansion = crate::catalog::expand(
        quote!(schema),
        quote!(
            enum OrderEvents {
                OrderPlaced(OrderPlaced),
            }
        ),
    );
    let expansion = formatted(&expansion);
    let described = "    impl __relaybus::DescribedCatalog for OrderEvents {
        const SCHEMAS: &'static [__relaybus::EventSchema] = &[__relaybus::EventSchema::of::<Self, OrderPlaced>()];
    }
";
    assert!(expansion.contains(described), "{expansion}");
}

#[test]
fn keys_are_written_without_needless_spaces() {
    let written = |key: TokenStream| {
        let expansion = crate::event::expand(quote!(
            #[event("a.v1", key = #key)]
            struct A {
                b: B,
            }
        ));
        let text = expansion.to_string();
        text.split("Some (").nth(1).and_then(|rest| rest.split('"').nth(1)).unwrap().to_owned()
    };
    assert_eq!(written(quote!(b)), "b");
    assert_eq!(written(quote!(b.c.0)), "b.c.0");
    assert_eq!(written(quote!(keys::of_order)), "keys::of_order");
    assert_eq!(written(quote!(|a| a.b as u8)), "|a|a.b as u8");
}
