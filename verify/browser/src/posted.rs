//! Pages that compute for a while: the page posts its result to the test.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Stdio};

use crate::chromium::Browser;

impl Browser {
    /// Opens the page with this fragment of its address, and returns the text that
    /// `result()`, a JavaScript expression evaluated whenever the page changes, returns first.
    /// While that is `null`, the page is waited for.
    ///
    /// # Panics
    ///
    /// If the page cannot be written or opened, or the browser ends before.
    pub fn result_of(&self, name: &str, html: &str, fragment: &str, result: &str) -> String {
        let folder = self.emptied(name);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the loopback");
        let port = listener.local_addr().expect("its address").port();
        let page = folder.join("posting.html");
        fs::write(&page, posting(html, port, result)).expect("the page is written");
        let mut command = self.command(&folder);
        command.arg(format!("file://{}#{fragment}", page.display()));
        command.stdout(Stdio::piped());
        let mut browser = Running(command.spawn().expect("chromium starts"));
        connect_at_end(browser.0.stdout.take().expect("a pipe"), port);
        let (stream, _) = listener.accept().expect("the loopback");
        let posted = body(stream).expect("the post is read");
        assert!(!posted.is_empty(), "{name}: chromium ended before the page had a result");
        drop(browser);
        let _ = fs::remove_dir_all(folder.join("profile"));
        posted
    }
}

/// A browser that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Inserts a script that posts the result once.
fn posting(html: &str, port: u16, result: &str) -> String {
    let script = format!(
        "<script>{{ let posted = false; new MutationObserver(() => {{ const text = {result}; \
         if (text === null || posted) return; posted = true; \
         fetch('http://127.0.0.1:{port}/', {{ method: 'POST', mode: 'no-cors', body: text }}); }})\
         .observe(document, {{ subtree: true, childList: true, attributes: true, characterData: true }}); }}</script>"
    );
    html.replacen("<head>", &format!("<head>{script}"), 1)
}

/// Connects to the port when the browser has ended, so that nobody waits for its post.
fn connect_at_end(mut output: ChildStdout, port: u16) {
    std::thread::spawn(move || {
        let _ = io::copy(&mut output, &mut io::sink());
        // Refused if the post came before.
        let _ = TcpStream::connect(("127.0.0.1", port));
    });
}

/// Reads the body of a request, and answers it. It is empty if nothing was sent.
fn body(stream: TcpStream) -> io::Result<String> {
    let mut reader = BufReader::new(&stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text)?;
    if length == 0 {
        return Ok(String::new());
    }
    (&stream).write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")?;
    String::from_utf8(text).map_err(io::Error::other)
}
