//! Images, sounds and documents on the wire (LLM-client brief §7.1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::llm::endpoint::Endpoint;
use crate::llm::error::{LlmError, LlmErrorKind};
use crate::llm::message::{Media, MediaSource};
use crate::llm::model::model_info;
use crate::llm::request::Request;
use crate::llm::warning::Warning;

/// Image types that both OpenAI and Anthropic accept; another one would make
/// every later request of the session fail.
pub(super) const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Type of an image that does not tell its own.
pub(super) const DEFAULT_TYPE: &str = "image/png";

/// Whether the model sees images: as the endpoint's option `vision` says, else
/// as the catalogue does. A model that nobody knows is taken to see them.
pub(super) fn sees_images(request: &Request, target: &Endpoint) -> bool {
    let known = || model_info(&request.model).map(|model| model.supports_vision);
    let told = target.options["vision"].as_bool();
    told.or_else(known).unwrap_or(true)
}

/// Whether it is an image that goes to OpenAI or Anthropic. What an address
/// leads to is for the provider to see.
pub(super) fn is_image(media: &Media) -> bool {
    let media_type = media.media_type.as_str();
    let at_url = matches!(media.source, MediaSource::Url(_));
    media_type.is_empty()
        || IMAGE_TYPES.contains(&media_type)
        || (at_url && media_type.starts_with("image/"))
}

/// A text document as a text with its name, for providers that have no place
/// for such a document.
pub(super) fn as_text(media: &Media) -> Option<String> {
    let name = media.file_name.as_deref().unwrap_or("document");
    let text = media.as_text()?;
    Some(format!("{name}:\n{text}"))
}

/// Its type, with the default filled in.
pub(super) fn media_type(media: &Media) -> &str {
    match media.media_type.as_str() {
        "" => DEFAULT_TYPE,
        media_type => media_type,
    }
}

/// Where media is, as an address.
pub(super) enum MediaAddress<'a> {
    /// On the web.
    Web(&'a str),
    /// In the request: type and base64.
    Inline(&'a str, String),
}

/// Where `media` is. Data in a `data:` address counts as inline.
///
/// # Errors
///
/// When it is a path or another address that `provider` cannot fetch; the core
/// reads no files.
pub(super) fn place<'a>(provider: &str, media: &'a Media) -> Result<MediaAddress<'a>, LlmError> {
    let url = match &media.source {
        MediaSource::Data(data) => {
            return Ok(MediaAddress::Inline(media_type(media), BASE64.encode(data)));
        }
        MediaSource::Url(url) => url,
    };
    let inline = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    if let Some((media_type, data)) = inline {
        return Ok(MediaAddress::Inline(media_type, data.to_owned()));
    }
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(MediaAddress::Web(url));
    }
    Err(LlmError::new(
        LlmErrorKind::InvalidRequest,
        provider,
        format!("`{url}` is not a web address; read the file and attach its bytes"),
    ))
}

/// The address of `media`, `data:` for what is inline.
///
/// # Errors
///
/// Those of [`place`].
pub(super) fn address(provider: &str, media: &Media) -> Result<String, LlmError> {
    Ok(match place(provider, media)? {
        MediaAddress::Web(url) => url.to_owned(),
        MediaAddress::Inline(media_type, data) => format!("data:{media_type};base64,{data}"),
    })
}

/// The text that stands for media which `provider` does not take.
pub(super) fn left_out(provider: &str, media: &Media, warnings: &mut Vec<Warning>) -> String {
    let media_type = &media.media_type;
    let message =
        format!("{provider} does not take {media_type}; the model is told that it was left out");
    warnings.push(Warning::new("media_dropped", message));
    format!("[{media_type} left out: this model cannot read it]")
}
