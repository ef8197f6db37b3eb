//! The crates and modules that talk to other services, and what in them does not.

/// Something that talks to another process.
#[derive(Debug, PartialEq, Eq)]
pub struct Service {
    /// The crate, module, type or function. A crate whose name ends in `*` is every crate that begins so.
    pub path: &'static str,
    /// What a call does, as the rest of a sentence: `sends an HTTP request`.
    pub does: &'static str,
    /// Names under `path` that call nobody.
    harmless: &'static [&'static str],
    /// Types under `path` whose methods call.
    clients: &'static [&'static str],
}

const HTTP: &str = "sends an HTTP request";
const RPC: &str = "calls a gRPC service";
const RABBIT: &str = "talks to RabbitMQ";
const KAFKA: &str = "talks to Kafka";
const BROKER: &str = "talks to a message broker";
const CACHE: &str = "talks to another database";
const MAIL: &str = "sends a mail";
const PROGRAM: &str = "runs another program";
const SOCKET: &str = "opens a network connection";
const CLOUD: &str = "calls a cloud service";
const REMOTE: &str = "calls a remote service";

const fn service(
    path: &'static str,
    does: &'static str,
    harmless: &'static [&'static str],
    clients: &'static [&'static str],
) -> Service {
    Service { path, does, harmless, clients }
}

#[rustfmt::skip]
const SERVICES: &[Service] = &[
    service("reqwest", HTTP, &[
        "Url", "StatusCode", "Method", "Version", "Error", "Body", "Certificate", "Identity", "Proxy", "NoProxy", "header",
        "redirect", "multipart", "cookie", "tls", "dns",
    ], &["Client", "RequestBuilder"]),
    service("reqwest_middleware", HTTP, &["Error"], &["ClientWithMiddleware", "RequestBuilder"]),
    service("ureq", HTTP, &["Error", "Body", "http", "config", "tls"], &["Agent", "RequestBuilder", "Request"]),
    service("hyper::client", HTTP, &[], &["Client", "SendRequest"]),
    service("hyper::Client", HTTP, &[], &["Client"]),
    service("hyper_util::client", HTTP, &[], &["Client"]),
    service("isahc", HTTP, &["Error", "config", "error", "http"], &["HttpClient"]),
    service("surf", HTTP, &["Error", "StatusCode", "Url", "http", "Config"], &["Client", "RequestBuilder"]),
    service("awc", HTTP, &["error", "http"], &["Client", "ClientRequest"]),
    service("attohttpc", HTTP, &["Error", "header"], &["Session", "RequestBuilder"]),
    service("minreq", HTTP, &["Error"], &["Request"]),
    service("curl", HTTP, &["Error"], &["Easy", "Easy2", "Multi"]),
    service("octocrab", HTTP, &["Error", "models", "params"], &["Octocrab"]),
    service("tonic::transport::Channel", RPC, &[], &["Channel"]),
    service("tonic::transport::Endpoint", RPC, &[], &["Endpoint"]),
    service("tonic::client", RPC, &[], &["Grpc"]),
    service("lapin", RABBIT, &[
        "options", "types", "protocol", "message", "Error", "ErrorKind", "BasicProperties", "ConnectionProperties", "ExchangeKind",
    ], &["Connection", "Channel", "Consumer"]),
    service("rdkafka::producer", KAFKA, &["FutureRecord", "BaseRecord", "DeliveryResult"],
        &["FutureProducer", "BaseProducer", "ThreadedProducer"]),
    service("rdkafka::consumer", KAFKA, &["CommitMode", "RebalanceProtocol"], &["StreamConsumer", "BaseConsumer"]),
    service("rdkafka::admin", KAFKA, &["NewTopic", "AdminOptions", "TopicReplication"], &["AdminClient"]),
    service("rskafka::client", KAFKA, &["error"], &["Client", "PartitionClient"]),
    service("async_nats", BROKER, &["Subject", "HeaderMap", "header"], &["Client", "Context"]),
    service("pulsar", BROKER, &["Error", "SerializeMessage", "DeserializeMessage"], &["Pulsar", "Producer", "Consumer"]),
    service("redis", CACHE, &["RedisError", "Value", "RedisResult", "ErrorKind"],
        &["Client", "Connection", "MultiplexedConnection", "ConnectionManager"]),
    service("deadpool_redis", CACHE, &["Config"], &["Pool", "Connection"]),
    service("fred", CACHE, &["error", "types"], &["Client", "Pool", "RedisClient", "RedisPool"]),
    service("memcache", CACHE, &["MemcacheError"], &["Client"]),
    service("elasticsearch", CACHE, &["Error", "params"], &["Elasticsearch"]),
    service("opensearch", CACHE, &["Error", "params"], &["OpenSearch"]),
    service("lettre", MAIL, &["Message", "message", "Address", "address", "Error", "error", "authentication"],
        &["SmtpTransport", "AsyncSmtpTransport", "SendmailTransport", "AsyncSendmailTransport"]),
    service("mail_send", MAIL, &["Error", "mail_builder", "Credentials"], &["SmtpClient", "SmtpClientBuilder"]),
    service("std::process::Command", PROGRAM, &[], &["Command"]),
    service("tokio::process::Command", PROGRAM, &[], &["Command"]),
    service("async_process::Command", PROGRAM, &[], &["Command"]),
    service("duct", PROGRAM, &[], &["Expression"]),
    service("std::net::TcpStream", SOCKET, &[], &["TcpStream"]),
    service("std::net::TcpListener", SOCKET, &[], &["TcpListener"]),
    service("std::net::UdpSocket", SOCKET, &[], &["UdpSocket"]),
    service("std::os::unix::net::UnixStream", SOCKET, &[], &["UnixStream"]),
    service("tokio::net", SOCKET, &["unix", "windows"],
        &["TcpStream", "TcpSocket", "TcpListener", "UdpSocket", "UnixStream", "UnixDatagram"]),
    service("tokio_tungstenite", SOCKET, &["tungstenite"], &["WebSocketStream"]),
    service("tungstenite", SOCKET, &["Message", "Error", "protocol", "http"], &["WebSocket"]),
    service("aws_sdk_*", CLOUD, &["types", "config", "error", "primitives", "operation"], &["Client"]),
    service("google_cloud_*", CLOUD, &["model", "error", "Error"], &["Client"]),
    service("azure_*", CLOUD, &["error", "Error", "models"], &["Client", "BlobClient", "ContainerClient"]),
    service("stripe", REMOTE, &["StripeError", "Currency", "ids"], &["Client"]),
    service("async_stripe", REMOTE, &["StripeError"], &["Client"]),
    service("openssh", REMOTE, &["Error", "KnownHosts", "Stdio"], &["Session"]),
    service("suppaftp", REMOTE, &["FtpError", "types"], &["FtpStream", "AsyncFtpStream"]),
];

/// Clients that `tonic` generates: `greeter_client::GreeterClient`.
static GENERATED: Service = service("tonic", RPC, &[], &[]);

/// What the function at `path` talks to. The path is a full one.
#[must_use]
pub fn service_of<S: AsRef<str>>(path: &[S]) -> Option<&'static Service> {
    if generated_client(path).is_some_and(|at| at + 1 < path.len()) {
        return Some(&GENERATED);
    }
    let service = under(path)?;
    let rest = path.get(service.path.split("::").count()..).unwrap_or_default();
    let is_harmless = rest.iter().any(|segment| service.harmless.contains(&segment.as_ref()));
    // What begins with a capital at the end is a variant, a tuple struct or a constant.
    let is_function = path.last().is_some_and(|name| !name.as_ref().starts_with(char::is_uppercase));
    (!is_harmless && is_function).then_some(service)
}

/// What the methods of the type at `path` talk to. The path is a full one.
#[must_use]
pub fn client_of<S: AsRef<str>>(path: &[S]) -> Option<&'static Service> {
    if generated_client(path).is_some_and(|at| at + 1 == path.len()) {
        return Some(&GENERATED);
    }
    let service = under(path)?;
    path.last().is_some_and(|name| service.clients.contains(&name.as_ref())).then_some(service)
}

fn under<S: AsRef<str>>(path: &[S]) -> Option<&'static Service> {
    SERVICES.iter().find(|service| {
        let mut segments = path.iter().map(AsRef::as_ref);
        service.path.split("::").all(|wanted| {
            segments.next().is_some_and(|segment| match wanted.strip_suffix('*') {
                Some(beginning) => segment.starts_with(beginning),
                None => segment == wanted,
            })
        })
    })
}

/// Where the client is in `.. greeter_client :: GreeterClient ..`.
fn generated_client<S: AsRef<str>>(path: &[S]) -> Option<usize> {
    let of_module = |at: &usize| {
        let (module, client) = (path[*at - 1].as_ref(), path[*at].as_ref());
        module.ends_with("_client") && client.ends_with("Client") && client.starts_with(char::is_uppercase)
    };
    (1..path.len()).find(of_module)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(path: &str) -> Vec<&str> {
        path.split("::").collect()
    }

    #[test]
    fn functions_that_call() {
        for (path, does) in [
            ("reqwest::get", HTTP),
            ("reqwest::Client::new", HTTP),
            ("reqwest::blocking::get", HTTP),
            ("ureq::post", HTTP),
            ("hyper_util::client::legacy::Client::builder", HTTP),
            ("tonic::transport::Channel::from_static", RPC),
            ("proto::greeter_client::GreeterClient::connect", RPC),
            ("lapin::Connection::connect", RABBIT),
            ("std::process::Command::new", PROGRAM),
            ("tokio::net::TcpStream::connect", SOCKET),
            ("tokio::net::lookup_host", SOCKET),
            ("aws_sdk_s3::Client::new", CLOUD),
        ] {
            assert_eq!(service_of(&split(path)).map(|service| service.does), Some(does), "{path}");
        }
    }

    #[test]
    fn functions_that_do_not() {
        for path in [
            "reqwest::Url::parse",
            "reqwest::header::HeaderValue::from_static",
            "lapin::options::BasicPublishOptions::default",
            "lettre::Message::builder",
            "rdkafka::producer::FutureRecord::to",
            "std::process::exit",
            "std::process::Stdio::piped",
            "std::net::Ipv4Addr::new",
            "tonic::Request::new",
            "tokio::spawn",
            "crate::reqwest::get",
            "reqwest_like::get",
            "std",
        ] {
            assert_eq!(service_of(&split(path)), None, "{path}");
        }
    }

    #[test]
    fn types_whose_methods_call() {
        for path in ["reqwest::Client", "reqwest::blocking::Client", "lapin::Channel", "a::b_client::BClient"] {
            assert!(client_of(&split(path)).is_some(), "{path}");
        }
        for path in ["reqwest::Url", "reqwest::Response", "lapin::types::FieldTable", "client::Client"] {
            assert!(client_of(&split(path)).is_none(), "{path}");
        }
    }

    #[test]
    fn every_service_is_listed_once() {
        for (at, service) in SERVICES.iter().enumerate() {
            assert!(SERVICES[at + 1..].iter().all(|other| other.path != service.path), "{}", service.path);
        }
    }
}
