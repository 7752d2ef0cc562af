//! `web_fetch` (spec 3.6): reads a page through an `http` effect.
//!
//! Only hosts that the configuration allows are asked, every redirect is
//! checked like the first address, no credential goes along, and what comes
//! back is cut to a size. The page's text is information for the model, never
//! an instruction from the user; the result says where it comes from.

mod html;
mod url;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::{Either, join_all, select};
use serde::Deserialize;
use std::pin::pin;

use super::executor::Executor;
use super::mapping::{Kind, Parameter, optional};
use super::{CallContext, Declared, ToolError, ToolOutput};
use crate::effect::{EffectKind, OutcomeKind};
use crate::llm::HttpRequest;
use url::Address;

pub(crate) use url::HostList;

/// Bytes of a body at most; the rest is not waited for.
const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;

/// Redirects followed at most.
const MAX_REDIRECTS: usize = 5;

/// Time for one address with its redirects, in ms.
const TIMEOUT_MS: u64 = 30_000;

/// Time for connecting, in ms.
const CONNECT_TIMEOUT_MS: u64 = 10_000;

/// Addresses taken from one prompt at most.
const MAX_ADDRESSES: usize = 5;

pub(super) const PARAMETERS: &[Parameter] =
    &[optional("url", Kind::Text), optional("prompt", Kind::Text)];

/// Fetches pages.
pub(super) struct WebFetch {
    hosts: Result<HostList, String>,
}

impl WebFetch {
    /// Asks only `hosts`, as [`HostList`] reads them; with a list that makes no sense
    /// every call fails.
    pub(super) fn new(hosts: &[String]) -> Self {
        Self {
            hosts: HostList::parse(hosts),
        }
    }
}

/// One address, or a text in which addresses stand.
#[derive(Deserialize)]
pub(super) struct Arguments {
    url: Option<String>,
    prompt: Option<String>,
}

#[async_trait(?Send)]
impl Executor for WebFetch {
    type Arguments = Arguments;

    const KIND: &'static str = "web_fetch";

    async fn execute(
        &self,
        declared: &Declared,
        call: &CallContext,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let hosts = self.hosts.as_ref().map_err(ToolError::new)?;
        let addresses = match (&arguments.url, &arguments.prompt) {
            (Some(url), _) => vec![url.as_str()],
            (None, Some(prompt)) => addresses_in(prompt),
            (None, None) => Vec::new(),
        };
        if addresses.is_empty() {
            let name = declared
                .advertised("url")
                .unwrap_or(declared.named("prompt"));
            return Err(ToolError::new(format!(
                "{name} names no address; give one that begins with https://"
            )));
        }
        let pages = addresses.iter().map(|address| fetch(call, hosts, address));
        let mut pages = join_all(pages).await;
        if pages.len() == 1 {
            let page = pages.remove(0)?;
            return Ok(ToolOutput::bounded(page, call.max_captured_bytes));
        }
        let is_error = pages.iter().all(Result::is_err);
        let pages = addresses
            .iter()
            .zip(pages)
            .map(|(address, page)| match page {
                Ok(page) => page,
                Err(error) => format!("[{address}: {}]", error.message),
            });
        let text = pages.collect::<Vec<_>>().join("\n\n");
        Ok(ToolOutput {
            is_error,
            ..ToolOutput::bounded(text, call.max_captured_bytes)
        })
    }
}

/// The addresses that stand in a text, each once.
fn addresses_in(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let starts = |word: &str| {
        word.find("https://")
            .into_iter()
            .chain(word.find("http://"))
            .min()
    };
    for word in text.split_whitespace() {
        let Some(start) = starts(word) else { continue };
        let end = |c: char| "<>\"'`".contains(c);
        let address = word[start..].split(end).next().unwrap_or_default();
        // Marks that end a sentence do not end an address.
        let address = address.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']']);
        if !found.contains(&address) && found.len() < MAX_ADDRESSES {
            found.push(address);
        }
    }
    found
}

/// What an exchange came to.
struct FetchResponse {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// There was more than is kept.
    cut: bool,
}

impl FetchResponse {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The page at `address` as text.
async fn fetch(call: &CallContext, hosts: &HostList, address: &str) -> Result<String, ToolError> {
    let mut address = Address::parse(address).map_err(ToolError::new)?;
    hosts.check(&address).map_err(ToolError::new)?;
    let end_ms = call.port.now_ms().saturating_add(TIMEOUT_MS);
    for _ in 0..=MAX_REDIRECTS {
        let left_ms = end_ms.saturating_sub(call.port.now_ms());
        let answer = exchange(call, &address, left_ms).await?;
        if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
            return report(&address, answer);
        }
        let Some(location) = answer.header("location") else {
            return Err(ToolError::new(format!(
                "{address} answered {} without saying where to go",
                answer.status
            )));
        };
        let next = address.follow(location);
        let next = next.map_err(|error| ToolError::new(format!("redirected: {error}")))?;
        hosts
            .check(&next)
            .map_err(|error| ToolError::new(format!("{address} redirects to {next}: {error}")))?;
        address = next;
    }
    Err(ToolError::new(format!(
        "more than {MAX_REDIRECTS} redirects, the last to {address}"
    )))
}

/// One request and its answer. Ends early when the call does, when time is up
/// and when enough has arrived; the effect's last outcome is waited for.
async fn exchange(
    call: &CallContext,
    address: &Address,
    limit_ms: u64,
) -> Result<FetchResponse, ToolError> {
    let request = HttpRequest {
        method: "GET".to_owned(),
        url: address.to_string(),
        headers: vec![(
            "accept".to_owned(),
            "text/html,text/markdown,text/plain,application/json,*/*;q=0.5".to_owned(),
        )],
        body: Bytes::new(),
        auth: None,
        connect_timeout_ms: CONNECT_TIMEOUT_MS,
    };
    let mut pending = call.port.request(&call.scope, EffectKind::Http(request));
    let mut timer = pin!(call.port.sleep(&call.scope, limit_ms));
    let mut answer = None;
    loop {
        let turn = match select(pin!(pending.next()), &mut timer).await {
            Either::Left((next, _)) => Ok(next),
            Either::Right((slept, _)) => Err(slept),
        };
        let next = match turn {
            Ok(next) => next,
            Err(time_is_up) => {
                pending.cancel();
                pending.finish().await;
                // A sleep that is cut short means that the call is cancelled.
                return Err(match time_is_up {
                    true => {
                        let seconds = TIMEOUT_MS / 1000;
                        ToolError::new(format!("{address} took longer than {seconds} s"))
                    }
                    false => ToolError::stopped("before it ended"),
                });
            }
        };
        match next {
            Some(OutcomeKind::HttpHead { status, headers }) => {
                answer = Some(FetchResponse {
                    status,
                    headers,
                    body: Vec::new(),
                    cut: false,
                });
            }
            Some(OutcomeKind::HttpChunk(bytes)) => {
                let Some(answer) = &mut answer else { continue };
                let room = MAX_BODY_BYTES - answer.body.len();
                answer
                    .body
                    .extend_from_slice(&bytes[..bytes.len().min(room)]);
                if bytes.len() > room {
                    answer.cut = true;
                    pending.cancel();
                    pending.finish().await;
                    break;
                }
            }
            Some(OutcomeKind::HttpEnd) | None => break,
            Some(OutcomeKind::HttpFailed(error)) => return Err(ToolError::new(error.message)),
            Some(OutcomeKind::Cancelled) => return Err(ToolError::stopped("before it ended")),
            Some(_) => {
                return Err(ToolError::new(
                    "the host answered a request with an outcome of another effect; fix the host",
                ));
            }
        }
    }
    answer.ok_or_else(|| ToolError::new(format!("{address} closed without an answer")))
}

/// The answer as text, under a line that says what it is.
fn report(address: &Address, answer: FetchResponse) -> Result<String, ToolError> {
    let declared_type = answer
        .header("content-type")
        .unwrap_or("")
        .to_ascii_lowercase();
    let media_type = declared_type.split(';').next().unwrap_or("").trim();
    let text = text_of(&answer.body, &declared_type);
    let looks_like_html = || {
        let start: String = text.trim_start().chars().take(15).collect();
        let start = start.to_ascii_lowercase();
        start.starts_with("<!doctype html") || start.starts_with("<html")
    };
    let is_text = media_type.starts_with("text/")
        || media_type.is_empty()
        || ["json", "xml", "javascript", "yaml", "toml"]
            .iter()
            .any(|kind| media_type.ends_with(kind));
    if !is_text || answer.body.contains(&0) {
        return Err(ToolError::new(format!(
            "{address} is not text ({}, {} bytes)",
            if media_type.is_empty() {
                "no content type"
            } else {
                media_type
            },
            answer.body.len()
        )));
    }
    let (title, body) = match media_type {
        "text/html" | "application/xhtml+xml" => page(&text),
        "" | "text/plain" if looks_like_html() => page(&text),
        _ => (String::new(), text),
    };
    let mut shown = format!("[{address}");
    if !title.is_empty() {
        shown.push_str(&format!(" — {title}"));
    }
    shown.push_str("]\n\n");
    shown.push_str(if body.is_empty() { "(no text)" } else { &body });
    if answer.cut {
        shown.push_str(&format!(
            "\n\n[only the first {MAX_BODY_BYTES} bytes were read]"
        ));
    }
    if (200..300).contains(&answer.status) {
        return Ok(shown);
    }
    let status = answer.status;
    Err(
        ToolError::new(format!("{address} answered with status {status}"))
            .after(ToolOutput::text(shown)),
    )
}

fn page(html: &str) -> (String, String) {
    let page = html::extract(html);
    (page.title, page.text)
}

/// The body as text: UTF-8, unless it says that it is Latin-1.
fn text_of(body: &[u8], content_type: &str) -> String {
    let latin = ["iso-8859-1", "latin1", "windows-1252", "us-ascii"];
    let is_latin = latin.iter().any(|name| content_type.contains(name));
    match std::str::from_utf8(body) {
        Ok(text) => text.to_owned(),
        Err(_) if is_latin => body.iter().map(|byte| char::from(*byte)).collect(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

#[cfg(test)]
mod tests;
