//! The part of HTTP/1.1 that agent clients use: heads, bodies by length or in chunks, complete answers and streams of events.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Read, Write},
    net::TcpStream,
};

use super::answer::Event;

/// The longest body that is read, more than any client sends; an endless body is not awaited.
const BODY_LIMIT: u64 = 64 << 20;
const HEAD_LIMIT: u64 = 256 << 10;

/// A request as it was received.
#[derive(Debug)]
pub(super) struct Incoming {
    pub method: String,
    pub path: String,
    /// The headers by their lower-case name.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// Reads the next request of a connection; `None` means that the connection has ended.
pub(super) fn read(from: &mut impl BufRead, to: &mut TcpStream) -> io::Result<Option<Incoming>> {
    let mut head = from.by_ref().take(HEAD_LIMIT);
    let Some(first) = line(&mut head)? else { return Ok(None) };
    let mut words = first.split_whitespace().map(str::to_string);
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(broken("no request line"));
    };
    let mut headers = BTreeMap::new();
    loop {
        let line = line(&mut head)?.ok_or_else(|| broken("the head ends early"))?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| broken("a header without a colon"))?;
        headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_string());
    }
    if headers.get("expect").is_some_and(|what| what.eq_ignore_ascii_case("100-continue")) {
        to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = body(from, &headers)?;
    Ok(Some(Incoming { method, path, headers, body }))
}

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_string()))
}

fn body(from: &mut impl BufRead, headers: &BTreeMap<String, String>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if !headers.get("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        let length = headers.get("content-length").map_or(Ok(0), |length| length.parse::<u64>());
        let length = length.map_err(|_| broken("a length that is none"))?;
        take(from, length, &mut body)?;
        return Ok(body);
    }
    loop {
        let size = line(from)?.ok_or_else(|| broken("the chunks end early"))?;
        let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
        let size = size.map_err(|_| broken("a chunk without a size"))?;
        take(from, size, &mut body)?;
        line(from)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn take(from: &mut impl BufRead, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
    if length.saturating_add(u64::try_from(into.len()).unwrap_or(u64::MAX)) > BODY_LIMIT {
        return Err(broken("the body is too long"));
    }
    match from.by_ref().take(length).read_to_end(into)? {
        got if u64::try_from(got).is_ok_and(|got| got == length) => Ok(()),
        _ => Err(broken("the body ends early")),
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A response that is sent in one piece.
#[derive(Debug)]
pub(super) struct Whole<'a> {
    pub status: u16,
    pub kind: &'a str,
    pub headers: &'a BTreeMap<String, String>,
    pub body: &'a str,
    /// For HEAD requests: everything except the body is sent.
    pub head_only: bool,
}

impl Whole<'_> {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.bytes())?;
        to.flush()
    }

    /// Writes the first half of the body, then nothing.
    pub(super) fn write_half(&self, to: &mut impl Write) -> io::Result<()> {
        let bytes = self.bytes();
        let kept = bytes.len() - self.body.len().div_ceil(2);
        to.write_all(bytes.get(..kept).unwrap_or_default())?;
        to.flush()
    }

    fn bytes(&self) -> Vec<u8> {
        let (status, kind, length) = (self.status, self.kind, self.body.len());
        let mut text = format!(
            "HTTP/1.1 {status} {}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n",
            words(status)
        );
        for (name, value) in self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        if !self.head_only {
            text.push_str(self.body);
        }
        text.into_bytes()
    }
}

/// The reason phrase of a status. Clients show it to the user, so these are the usual ones.
fn words(status: u16) -> &'static str {
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
pub(super) fn begin_stream(to: &mut impl Write) -> io::Result<()> {
    to.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
          transfer-encoding: chunked\r\n\r\n",
    )
}

pub(super) fn write_event(to: &mut impl Write, event: &Event) -> io::Result<()> {
    let name = event.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
    let text = format!("{name}data: {}\n\n", event.data);
    to.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())?;
    to.flush()
}

pub(super) fn end_stream(to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"0\r\n\r\n")?;
    to.flush()
}
