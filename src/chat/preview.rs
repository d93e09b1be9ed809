//! What would be sent.

use serde_json::{Map, Value, json};

use crate::responses::{Client, Request};

/// The longest text of data that is shown as it is, in bytes.
const MAX_DATA_BYTES: usize = 200;

/// A request without key and without long data.
pub(crate) fn preview(
    client: &Client,
    request: &Request,
    stream: bool,
    programs: impl Iterator<Item = String>,
) -> Value {
    let endpoint = client.endpoint();
    let mut headers = Map::new();
    headers.insert("content-type".to_owned(), "application/json".into());
    for (name, _) in &endpoint.headers {
        headers.insert(name.to_ascii_lowercase(), "[redacted]".into());
    }
    let mut body = Value::Object(client.body(request, stream));
    shorten(&mut body);
    json!({
        "version": "preview.v1",
        "method": "POST",
        "url": format!("{}/responses", endpoint.base_url),
        "profile": endpoint.name,
        "dialect": endpoint.dialect.name(),
        "headers": headers,
        "body": body,
        "runs": programs.collect::<Vec<_>>(),
    })
}

/// Puts the beginning of base64 data in its place.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("data:") && text.len() > MAX_DATA_BYTES => {
            let head = text.split_once(',').map_or("data:", |(head, _)| head);
            *text = format!("{head},… ({} bytes)", text.len());
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}
