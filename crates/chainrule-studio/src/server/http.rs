//! One HTTP request of a connection: a file of the page, or the way to the socket.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Shared, page};

/// The longest head of a request.
const HEAD: usize = 16 << 10;

/// The head of a request.
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
}

impl Request {
    /// The value of a header that stands once.
    fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let first = found.next()?;
        found.next().is_none().then_some(first.1.as_str())
    }

    fn has(&self, name: &str, word: &str) -> bool {
        let words = self.header(name).unwrap_or_default().split(',');
        words.into_iter().any(|own| own.trim().eq_ignore_ascii_case(word))
    }
}

/// A refusal: the status, and why.
struct Refusal(&'static str, &'static str);

/// Answers the request of a connection; the key of the handshake if it becomes a socket.
pub fn answer(stream: &TcpStream, shared: &Shared) -> io::Result<Option<String>> {
    stream.set_write_timeout(Some(2 * shared.patience))?;
    stream.set_nodelay(true)?;
    let request = match read(stream, shared.patience)? {
        Ok(request) => request,
        Err(refusal) => return refuse(stream, &refusal),
    };
    match admit(&request, shared) {
        Err(refusal) => refuse(stream, &refusal),
        Ok(true) => Ok(request.header("sec-websocket-key").map(str::to_owned)),
        Ok(false) => {
            let Some((body, kind)) = page::file(&request.path) else {
                return refuse(stream, &Refusal("404 Not Found", "there is no such file"));
            };
            respond(stream, shared, "200 OK", kind, body, request.method == "HEAD")?;
            Ok(None)
        }
    }
}

/// Whether a request is one for the socket. A page of another site, or one that a name was rebound
/// for, shows by its host or origin.
fn admit(request: &Request, shared: &Shared) -> Result<bool, Refusal> {
    if request.header("host") != Some(&shared.host()) {
        return Err(Refusal("421 Misdirected Request", "the host is not this server"));
    }
    let origin = request.headers.iter().any(|(name, _)| name == "origin");
    if origin && request.header("origin") != Some(&shared.origin()) {
        return Err(Refusal("403 Forbidden", "the origin is not this server"));
    }
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        return Err(Refusal("405 Method Not Allowed", "only GET and HEAD are answered"));
    }
    if request.path != "/socket" {
        return Ok(false);
    }
    if !origin {
        return Err(Refusal("403 Forbidden", "a socket needs an origin"));
    }
    let upgrades = request.method == "GET"
        && request.has("connection", "upgrade")
        && request.has("upgrade", "websocket")
        && request.header("sec-websocket-version") == Some("13")
        && request.header("sec-websocket-key").is_some();
    match upgrades {
        true => Ok(true),
        false => Err(Refusal("426 Upgrade Required", "this address is a WebSocket")),
    }
}

/// Reads the head. A client that takes longer than `patience` for all of it is dropped.
fn read(mut stream: &TcpStream, patience: Duration) -> io::Result<Result<Request, Refusal>> {
    let end = Instant::now() + patience;
    let mut head = Vec::new();
    let mut part = [0u8; 1024];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&part[..count]);
        if let Some(at) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            let bad = || Refusal("400 Bad Request", "the request is not HTTP");
            // A request with a body has no meaning here.
            if head.len() > at + 4 {
                return Ok(Err(bad()));
            }
            return Ok(parse(&head[..at]).ok_or_else(bad));
        }
        if head.len() > HEAD {
            let long = Refusal("431 Request Header Fields Too Large", "the request is too long");
            return Ok(Err(long));
        }
    }
}

fn parse(head: &[u8]) -> Option<Request> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target, version) = (first.next()?, first.next()?, first.next()?);
    if version != "HTTP/1.1" || first.next().is_some() {
        return None;
    }
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
        is_name.then(|| (name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let path = target.split('?').next()?.to_owned();
    Some(Request {
        method: method.to_owned(),
        path,
        headers: lines.map(header).collect::<Option<_>>()?,
    })
}

fn respond(
    mut stream: &TcpStream,
    shared: &Shared,
    status: &str,
    kind: &str,
    body: &[u8],
    head_only: bool,
) -> io::Result<()> {
    let policy = format!(
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; \
         img-src 'self' data:; font-src 'self'; connect-src 'self' ws://{}; worker-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        shared.host()
    );
    let head = head(status, kind, body.len(), &policy);
    stream.write_all(head.as_bytes())?;
    if !head_only {
        stream.write_all(body)?;
    }
    stream.flush()
}

/// The head of any answer, also of one that refuses.
fn head(status: &str, kind: &str, length: usize, policy: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nContent-Security-Policy: {policy}\r\nX-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\nX-Frame-Options: DENY\r\n\r\n"
    )
}

/// A refusal loads nothing.
const NOTHING: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn refuse(mut stream: &TcpStream, refusal: &Refusal) -> io::Result<Option<String>> {
    let Refusal(status, why) = refusal;
    let head = head(status, "text/plain; charset=utf-8", why.len() + 1, NOTHING);
    let answer = format!("{head}{why}\n");
    stream.write_all(answer.as_bytes())?;
    Ok(None)
}

/// Turns a client away without waiting for its request.
pub fn refuse_at_once(stream: &TcpStream) {
    let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
    let _ = refuse(stream, &Refusal("503 Service Unavailable", "too many connections"));
}
