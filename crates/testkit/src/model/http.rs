//! The part of HTTP/1.1 that agent clients use: heads, bodies by length or in chunks, complete answers and streams of events.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Read, Write},
    net::TcpStream,
};

use super::model_answer::StreamEvent;

/// The longest body that is read, more than any client sends; an endless body is not awaited.
const BODY_LIMIT: u64 = 64 << 20;
const HEAD_LIMIT: u64 = 256 << 10;

/// A request as it was received.
#[derive(Debug)]
pub(super) struct HttpRequest {
    pub method: String,
    pub path: String,
    /// The headers by their lower-case name.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// Reads the next request of a connection; `None` means that the connection has ended.
pub(super) fn read_request(reader: &mut impl BufRead, writer: &mut TcpStream) -> io::Result<Option<HttpRequest>> {
    let mut head = reader.by_ref().take(HEAD_LIMIT);
    let Some(request_line) = read_line(&mut head)? else { return Ok(None) };
    let mut request_words = request_line.split_whitespace().map(str::to_string);
    let (Some(method), Some(path)) = (request_words.next(), request_words.next()) else {
        return Err(invalid_data("missing request line"));
    };
    let mut headers = BTreeMap::new();
    loop {
        let line = read_line(&mut head)?.ok_or_else(|| invalid_data("headers end unexpectedly"))?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid_data("header without a colon"))?;
        headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_string());
    }
    if headers.get("expect").is_some_and(|expectation| expectation.eq_ignore_ascii_case("100-continue")) {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = read_body(reader, &headers)?;
    Ok(Some(HttpRequest { method, path, headers, body }))
}

fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut text_line = String::new();
    if reader.read_line(&mut text_line)? == 0 {
        return Ok(None);
    }
    Ok(Some(text_line.trim_end_matches(['\r', '\n']).to_string()))
}

fn read_body(reader: &mut impl BufRead, headers: &BTreeMap<String, String>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if !headers.get("transfer-encoding").is_some_and(|encoding| encoding.eq_ignore_ascii_case("chunked")) {
        let length = headers.get("content-length").map_or(Ok(0), |length_text| length_text.parse::<u64>());
        let length = length.map_err(|_| invalid_data("invalid content length"))?;
        read_exact_bytes(reader, length, &mut body)?;
        return Ok(body);
    }
    loop {
        let size_line = read_line(reader)?.ok_or_else(|| invalid_data("chunks end unexpectedly"))?;
        let chunk_size = u64::from_str_radix(size_line.split(';').next().unwrap_or_default().trim(), 16);
        let chunk_size = chunk_size.map_err(|_| invalid_data("invalid chunk size"))?;
        read_exact_bytes(reader, chunk_size, &mut body)?;
        read_line(reader)?;
        if chunk_size == 0 {
            return Ok(body);
        }
    }
}

fn read_exact_bytes(reader: &mut impl BufRead, length: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    if length.saturating_add(u64::try_from(buffer.len()).unwrap_or(u64::MAX)) > BODY_LIMIT {
        return Err(invalid_data("body too large"));
    }
    match reader.by_ref().take(length).read_to_end(buffer)? {
        got if u64::try_from(got).is_ok_and(|got| got == length) => Ok(()),
        _ => Err(invalid_data("body ends unexpectedly")),
    }
}

fn invalid_data(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// A response that is sent in one piece.
#[derive(Debug)]
pub(super) struct HttpResponse<'a> {
    pub status: u16,
    pub content_type: &'a str,
    pub headers: &'a BTreeMap<String, String>,
    pub body: &'a str,
    /// For HEAD requests: everything except the body is sent.
    pub head_only: bool,
}

impl HttpResponse<'_> {
    pub(super) fn write_to(&self, writer: &mut impl Write) -> io::Result<()> {
        writer.write_all(&self.to_bytes())?;
        writer.flush()
    }

    /// Writes the first half of the body, then nothing.
    pub(super) fn write_half_to(&self, writer: &mut impl Write) -> io::Result<()> {
        let bytes = self.to_bytes();
        let kept = bytes.len() - self.body.len().div_ceil(2);
        writer.write_all(bytes.get(..kept).unwrap_or_default())?;
        writer.flush()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let (status, content_type, length) = (self.status, self.content_type, self.body.len());
        let mut response_text = format!(
            "HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n",
            reason_phrase(status)
        );
        for (name, value) in self.headers {
            response_text.push_str(&format!("{name}: {value}\r\n"));
        }
        response_text.push_str("\r\n");
        if !self.head_only {
            response_text.push_str(self.body);
        }
        response_text.into_bytes()
    }
}

/// The reason phrase of a status. Clients show it to the user, so these are the usual ones.
fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "",
    }
}

/// Begins a stream of events.
pub(super) fn begin_stream(writer: &mut impl Write) -> io::Result<()> {
    writer.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
          transfer-encoding: chunked\r\n\r\n",
    )
}

pub(super) fn write_event(writer: &mut impl Write, event: &StreamEvent) -> io::Result<()> {
    let name_line = event.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
    let text = format!("{name_line}data: {}\n\n", event.data);
    writer.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())?;
    writer.flush()
}

pub(super) fn end_stream(writer: &mut impl Write) -> io::Result<()> {
    writer.write_all(b"0\r\n\r\n")?;
    writer.flush()
}
