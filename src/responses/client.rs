//! Requests to an endpoint, and their answers.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::endpoint::{BaseUrl, Endpoint, Scrubber};
use super::error::{ApiError, Error};
use super::retry::{self, Retry};
use super::stream::EventStream;
use super::{Assembly, Request, Response};

/// The most that an answer which is no stream may have, in bytes.
pub const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A client of one endpoint. Clones share its connections.
///
/// A future of it that is dropped closes its connection, which is how a request is cancelled.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) scrubber: Scrubber,
    on_retry: Option<RetryNotice>,
}

type RetryNotice = Arc<dyn Fn(&Retry) + Send + Sync>;

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of `endpoint`. Proxies are taken from the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), except for
    /// servers on this machine; certificates from the system (or `SSL_CERT_FILE`, `SSL_CERT_DIR`) and from the endpoint's
    /// `ca_file`.
    ///
    /// # Errors
    /// [`Error::Setup`]: a header or certificate that cannot be used.
    pub fn new(endpoint: Endpoint) -> Result<Self, Error> {
        let http = builder(&endpoint.base_url, endpoint.ca_file.as_deref())?
            .default_headers(headers(&endpoint)?)
            .connect_timeout(endpoint.timeouts.connect);
        let http = build(http)?;
        Ok(Self { http, scrubber: Scrubber::new(&endpoint), endpoint: Arc::new(endpoint), on_retry: None })
    }

    /// Calls `notice` before a request is sent again, so that the user knows what is waited for.
    #[must_use]
    pub fn with_retry_notice(mut self, notice: impl Fn(&Retry) + Send + Sync + 'static) -> Self {
        self.on_retry = Some(Arc::new(notice));
        self
    }

    /// Where the requests go.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What is sent for a request: fitted to the endpoint's dialect, without key.
    pub fn body(&self, request: &Request, stream: bool) -> Map<String, Value> {
        let mut body = request.to_json();
        self.endpoint.dialect.fit(&mut body);
        if stream {
            body.insert("stream".to_owned(), true.into());
        }
        body
    }

    /// Asks for a response and waits for all of it. One that is incomplete is no error, see [`Response::status`].
    ///
    /// # Errors
    /// See [`Error`]. A response that failed is [`Error::Api`].
    pub async fn create(&self, request: &Request) -> Result<Response, Error> {
        let answer = self.post(request, false).await?;
        let mut stream = EventStream::new(self, answer);
        while stream.next().await?.is_some() {}
        Ok(stream.into_response())
    }

    /// Asks for a response and returns as soon as it begins.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        Ok(EventStream::new(self, self.post(request, true).await?))
    }

    /// A response that the endpoint keeps. `include` names more that it shall have.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn get(&self, id: &str, include: &[String]) -> Result<Response, Error> {
        let value = self.get_json(&["responses", id], &query("include", include)).await?;
        Response::from_json(value).ok_or_else(|| self.protocol("a response is no object"))
    }

    /// The input of a response that the endpoint keeps, a page of it, as the endpoint sends it.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn input_items(&self, id: &str, parameters: &[(String, String)]) -> Result<Value, Error> {
        self.get_json(&["responses", id, "input_items"], parameters).await
    }

    /// Makes the endpoint forget a response. What it answers, often nothing, does not matter.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn delete(&self, id: &str) -> Result<(), Error> {
        let url = self.endpoint.base_url.join(&["responses", id]);
        self.send(self.http.delete(url), false).await.map(drop)
    }

    /// The names of the endpoint's models.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn models(&self) -> Result<Vec<String>, Error> {
        let name = |model: &Value| model.get("id").or_else(|| model.get("name"))?.as_str().map(str::to_owned);
        Ok(self.list_models().await?.iter().filter_map(name).collect())
    }

    /// The endpoint's models as it describes them.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn list_models(&self) -> Result<Vec<Value>, Error> {
        let mut value = self.get_json(&["models"], &[]).await?;
        let list =
            ["data", "models"].into_iter().find_map(|name| value.get_mut(name)?.as_array_mut().map(std::mem::take));
        list.ok_or_else(|| self.protocol("its list of models is no list"))
    }

    /// Uploads a file for use in a prompt and returns its id. Ark reads it in the background: it is waited for.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn upload(&self, name: &str, bytes: &[u8]) -> Result<String, Error> {
        const BOUNDARY: &str = "agentchat-7f1c0e6b9d5a4e2f";
        let mut body = Vec::with_capacity(bytes.len() + 512);
        let name: String = name.chars().map(|c| if c.is_control() || c == '"' { '_' } else { c }).collect();
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n--{BOUNDARY}\r\n\
             Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = self.http.post(self.endpoint.base_url.join(&["files"])).header(header::CONTENT_TYPE, kind);
        let answer = self.send(request.body(body), false).await?;
        let mut file = self.json(answer).await?;
        let id = file.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if id.is_empty() {
            return Err(self.protocol("an uploaded file got no id"));
        }
        let started = tokio::time::Instant::now();
        while file.get("status").and_then(Value::as_str) == Some("processing") {
            if started.elapsed() > self.endpoint.timeouts.first_byte {
                return Err(Error::Stalled { host: self.host(), waited: started.elapsed(), partial: None });
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            file = self.get_json(&["files", &id], &[]).await?;
        }
        if file.get("status").and_then(Value::as_str) == Some("failed") {
            return Err(self.protocol(&format!("the file {name} was uploaded, but could not be read there")));
        }
        Ok(id)
    }

    pub(super) fn host(&self) -> String {
        self.endpoint.base_url.host()
    }

    pub(super) fn protocol(&self, reason: &str) -> Error {
        Error::Protocol { host: self.host(), reason: self.scrubber.clean(reason) }
    }

    async fn get_json(&self, path: &[&str], query: &[(String, String)]) -> Result<Value, Error> {
        let mut url = self.endpoint.base_url.join(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let answer = self.send(self.http.get(url), false).await?;
        self.json(answer).await
    }

    async fn json(&self, answer: reqwest::Response) -> Result<Value, Error> {
        let body = self.read_body(answer).await?;
        serde_json::from_slice(&body)
            .map_err(|_| self.protocol(&format!("it answers {}, which is not JSON", excerpt(&body))))
    }

    async fn post(&self, request: &Request, stream: bool) -> Result<reqwest::Response, Error> {
        let body = self.body(request, stream);
        let url = self.endpoint.base_url.join(&["responses"]);
        let accept = if stream { "text/event-stream" } else { "application/json" };
        let mut post =
            self.http.post(url).header(header::CONTENT_TYPE, "application/json").header(header::ACCEPT, accept);
        for (name, value) in self.endpoint.dialect.headers(&body) {
            post = post.header(name, value);
        }
        let bytes = serde_json::to_vec(&body).map_err(|error| Error::Setup(error.to_string()))?;
        self.send(post.body(bytes), request.runs_tools_at_endpoint()).await
    }

    /// Sends a request until it is answered with success, or with a failure that another attempt does not change.
    async fn send(&self, request: reqwest::RequestBuilder, runs_tools: bool) -> Result<reqwest::Response, Error> {
        let request = request.build().map_err(|error| Error::Setup(reason(&error)))?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let copy = request.try_clone().ok_or_else(|| Error::Setup("a request cannot be sent twice".to_owned()))?;
            tracing::debug!(method = %copy.method(), url = %copy.url(), attempt, "request");
            let started = std::time::Instant::now();
            let limit = self.endpoint.timeouts.first_byte;
            let answer = tokio::time::timeout(limit, self.http.execute(copy)).await;
            let answer = answer.map_err(|_| Error::Stalled { host: self.host(), waited: limit, partial: None })?;
            let answer = answer
                .map_err(|error| Error::Connect { host: self.host(), reason: self.scrubber.clean(&reason(&error)) })?;
            tracing::debug!(status = answer.status().as_u16(), elapsed = ?started.elapsed(), "answer");
            if answer.status().is_success() {
                return Ok(answer);
            }
            let error = self.refusal(answer).await;
            let Some(wait) = retry::wait(&error, attempt, runs_tools, spread()) else {
                return Err(Error::Api(Box::new(error)));
            };
            tracing::info!(status = error.status, ?wait, attempt, "the request is sent again");
            if let Some(notice) = &self.on_retry {
                notice(&Retry { attempt, wait, error });
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// What an answer that is no success says.
    async fn refusal(&self, answer: reqwest::Response) -> ApiError {
        let status = answer.status();
        let headers = answer.headers().clone();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        // The reason of a failure is worth no error of its own: without a body there is still the status.
        let body = self.read_body(answer).await.unwrap_or_default();
        let mut error = match serde_json::from_str::<Value>(&self.scrubber.clean(&String::from_utf8_lossy(&body))) {
            Ok(json @ Value::Object(_)) => ApiError::from_json(&json),
            _ if status.is_redirection() => ApiError {
                message: format!(
                    "it has moved to {}: set base_url to that",
                    text("location").unwrap_or("another place")
                ),
                ..ApiError::default()
            },
            _ if body.trim_ascii().is_empty() => ApiError {
                message: status.canonical_reason().unwrap_or("no reason given").to_owned(),
                ..ApiError::default()
            },
            _ => ApiError { message: self.scrubber.clean(&excerpt(&body)), ..ApiError::default() },
        };
        error.status = Some(status.as_u16());
        error.request_id = ["x-request-id", "x-tt-logid"].iter().find_map(|name| text(name)).map(str::to_owned);
        let now = text("date").and_then(retry::http_date).or_else(seconds_now);
        error.retry_after = retry::retry_after(text("retry-after-ms"), text("retry-after"), now);
        error
    }

    pub(super) async fn read_body(&self, mut answer: reqwest::Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        let limit = self.endpoint.timeouts.first_byte;
        loop {
            let piece = tokio::time::timeout(limit, answer.chunk()).await;
            let piece = piece.map_err(|_| Error::Stalled { host: self.host(), waited: limit, partial: None })?;
            match piece {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) => return Ok(body),
                Err(error) => {
                    let (host, reason) = (self.host(), reason(&error));
                    return Err(Error::Cut { host, reason, partial: Box::default() });
                }
            }
            if body.len() > MAX_BODY_BYTES {
                return Err(self.protocol("its answer has no end"));
            }
        }
    }

    /// Reads a whole answer as if it had been streamed.
    pub(super) fn read_whole(
        &self,
        body: &[u8],
        assembly: &mut Assembly,
    ) -> Result<(Value, Vec<super::Update>), Error> {
        let response: Value = serde_json::from_slice(body)
            .map_err(|_| self.protocol(&format!("it answers {}, which is not JSON", excerpt(body))))?;
        let failed = response.get("status").and_then(Value::as_str) == Some("failed");
        if failed || response.get("error").is_some_and(|error| !error.is_null()) {
            let mut error = ApiError::from_json(&response);
            error.body = None;
            error.message = self.scrubber.clean(&error.message);
            error.partial = Response::from_json(response).filter(|response| !response.id().is_empty()).map(Box::new);
            return Err(Error::Api(Box::new(error)));
        }
        if response.get("output").is_none() && response.get("status").is_none() {
            return Err(self.protocol(&format!("it answers {}, which is no response", excerpt(body))));
        }
        let mut updates = Vec::new();
        assembly.whole(&response, &mut updates);
        Ok((response, updates))
    }
}

fn headers(endpoint: &Endpoint) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &endpoint.key {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.reveal())).map_err(|_| {
            Error::Setup("the key has characters that no key has: check where it comes from".to_owned())
        })?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    for (name, value) in &endpoint.headers {
        let wrong = || Error::Setup(format!("the header {name:?} of profile {:?} is not valid", endpoint.name));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// `ring` for all of the process; that it was installed before is as good.
/// A client for another server of the user's, with the same proxies and certificates as those of endpoints, and no key.
///
/// # Errors
/// [`Error::Setup`]: no HTTPS on this machine.
pub fn without_key(url: &BaseUrl) -> Result<reqwest::Client, Error> {
    build(builder(url, None)?)
}

fn build(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, Error> {
    builder.build().map_err(|error| Error::Setup(format!("HTTPS cannot be used: {}", reason(&error))))
}

fn builder(url: &BaseUrl, ca_file: Option<&std::path::Path>) -> Result<reqwest::ClientBuilder, Error> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("agentchat/", env!("CARGO_PKG_VERSION")))
        // A key must not follow a redirect to somebody else.
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true);
    if url.is_loopback() {
        builder = builder.no_proxy();
    }
    if url.is_plain() {
        // Reading the system's certificates takes longer than a whole request to a local server.
        return Ok(builder.tls_backend_preconfigured(without_certificates()?));
    }
    install_crypto();
    Ok(match ca_file {
        Some(path) => builder.tls_certs_merge(certificates(path)?),
        None => builder,
    })
}

fn install_crypto() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn without_certificates() -> Result<rustls::ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Setup(error.to_string()))?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

fn certificates(path: &std::path::Path) -> Result<Vec<reqwest::Certificate>, Error> {
    let wrong = |why: String| Error::Setup(format!("ca_file {} cannot be used: {why}", path.display()));
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let certificates = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| wrong(reason(&error)))?;
    if certificates.is_empty() { Err(wrong("it has no certificate in PEM form".to_owned())) } else { Ok(certificates) }
}

/// The innermost reason of an error, without the URL.
pub(super) fn reason(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let reason = innermost.to_string();
    if error.is_timeout() && error.is_connect() {
        return "it does not answer".to_owned();
    }
    if reason.contains("certificate") {
        return format!("{reason} (a private authority? name its file as ca_file in the profile, or in SSL_CERT_FILE)");
    }
    reason
}

/// The beginning of a body, for people.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(800)]);
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{:?}…", &line[..end]),
        None => format!("{line:?}"),
    }
}

fn query(name: &str, values: &[String]) -> Vec<(String, String)> {
    values.iter().map(|value| (name.to_owned(), value.clone())).collect()
}

fn seconds_now() -> Option<u64> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// From 0 to 1, different each time.
fn spread() -> f64 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    f64::from(nanos % 1_000_000) / 1_000_000.0
}
