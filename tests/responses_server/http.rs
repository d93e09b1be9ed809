//! As much of HTTP/1.1 as a test needs: one request for each connection.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A request as it was read.
#[derive(Debug)]
pub(super) struct RawRequest {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Nothing if the peer closed without a request.
pub(super) fn read(stream: &TcpStream) -> io::Result<Option<RawRequest>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or(Ok(0), |(_, value)| value.parse());
    let mut body = vec![0; length.map_err(io::Error::other)?];
    reader.read_exact(&mut body)?;
    Ok(Some(RawRequest { method, target, headers, body }))
}

/// The head of an answer whose body is chunked, so that its end can be missing.
pub(super) fn write_head(stream: &mut TcpStream, status: u16, headers: &[(String, String)]) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} X\r\ntransfer-encoding: chunked\r\nconnection: close\r\n");
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes())
}

pub(super) fn write_chunk(stream: &mut TcpStream, chunk: &[u8]) -> io::Result<()> {
    if chunk.is_empty() {
        return Ok(());
    }
    let mut bytes = format!("{:x}\r\n", chunk.len()).into_bytes();
    bytes.extend_from_slice(chunk);
    bytes.extend_from_slice(b"\r\n");
    stream.write_all(&bytes)
}

pub(super) fn write_end(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")
}
