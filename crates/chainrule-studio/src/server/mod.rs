//! The local server: the packed page over HTTP, and an engine for each page over a WebSocket.
//!
//! It listens on 127.0.0.1 alone and trusts no client: a request names the exact host, a socket the
//! exact origin and, in its first message, the token of the address that was printed. Files come
//! from a table in the program; nothing that a client sends is a path of the file system.

mod http;
mod page;
mod socket;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::engine::Given;
use crate::live::Hub;

/// The most connections at a time.
const CONNECTIONS: usize = 200;

/// The time within which a client sends its request, or the token.
const PATIENCE: Duration = Duration::from_secs(5);

/// Room for the interpreter, which follows the depth of a program.
const STACK: usize = 32 << 20;

/// State that all connections share.
struct Shared {
    address: SocketAddr,
    token: String,
    given: Vec<Given>,
    hub: Hub,
    patience: Duration,
    open: AtomicUsize,
}

impl Shared {
    /// The host that a request must name.
    fn host(&self) -> String {
        self.address.to_string()
    }

    fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// A server that listens, and answers once [`Studio::serve`] is called.
///
/// ```
/// use chainrule_studio::{Given, Studio};
/// let text = "x = leaf(3.0)\ny = x * x".into();
/// let program = Given { title: "square".into(), text, ..Given::default() };
/// let studio = Studio::bind(0, vec![program])?;
/// assert!(studio.url().starts_with("http://127.0.0.1:"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Studio {
    listener: TcpListener,
    shared: Arc<Shared>,
}

impl Studio {
    /// Listens on this port of 127.0.0.1, or on a free one for 0. Errors where the port is taken,
    /// or the system gives no random numbers for the token.
    pub fn bind(port: u16, given: Vec<Given>) -> io::Result<Studio> {
        Studio::with_patience(port, given, PATIENCE)
    }

    fn with_patience(port: u16, given: Vec<Given>, patience: Duration) -> io::Result<Studio> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let open = AtomicUsize::new(0);
        let hub = Hub::new();
        let shared = Shared { address, token: token()?, given, hub, patience, open };
        Ok(Studio { listener, shared: Arc::new(shared) })
    }

    /// The runs that the page shows.
    pub fn hub(&self) -> &Hub {
        &self.shared.hub
    }

    /// The address of one part of the page, such as `training`.
    pub fn url_of(&self, part: &str) -> String {
        format!("{}&/{part}", self.url())
    }

    /// The address of the page, with the token that a browser does not send on.
    pub fn url(&self) -> String {
        format!("{}/#token={}", self.shared.origin(), self.shared.token)
    }

    /// Answers until the process ends. Errors if the listener is lost.
    pub fn serve(self) -> io::Result<()> {
        loop {
            let (stream, _) = match self.listener.accept() {
                Ok(accepted) => accepted,
                // A client that gave up before it was accepted.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(e) => return Err(e),
            };
            let shared = self.shared.clone();
            if shared.open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
                shared.open.fetch_sub(1, Ordering::Relaxed);
                http::refuse_at_once(&stream);
                continue;
            }
            let builder = thread::Builder::new().name("studio".into()).stack_size(STACK);
            let counted = Counted(shared);
            // Without a thread the connection is dropped, and with it its count.
            let _ = builder.spawn(move || connection(stream, &counted.0));
        }
    }
}

/// A connection that is counted until it ends.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A client that does not keep to the protocol is dropped; there is nobody to tell.
fn connection(stream: TcpStream, shared: &Shared) {
    if let Ok(Some(key)) = http::answer(&stream, shared) {
        let _ = socket::talk(stream, &key, shared);
    }
}

/// 128 random bits as text.
fn token() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes the page to a folder, for any server of files. Errors where the folder cannot be written,
/// or this build has no page.
pub fn export(folder: &Path) -> io::Result<usize> {
    let files = page::FILES;
    if files.is_empty() {
        return Err(io::Error::other(
            "this build of chainrule has no page; run `npm run build` in web/ first",
        ));
    }
    for (name, bytes) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, bytes)?;
    }
    Ok(files.len())
}
