//! An HTTP client that does nothing, under the name of one that does: the lint knows names.

/// A client.
#[derive(Clone, Debug, Default)]
pub struct Client;

impl Client {
    /// A client.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Sends nothing.
    pub async fn get(&self, url: &str) -> usize {
        get(url).await
    }
}

/// Sends nothing.
pub async fn get(url: &str) -> usize {
    std::future::ready(url.len()).await
}
