//! One line of the Combined Log Format:
//!
//! ```text
//! host ident user [time] "request" status bytes "referer" "user agent"
//! ```
//!
//! Inside quotes a backslash escapes the next character, as Apache and nginx write it. Clients do
//! not always send a request (`"\x16\x03\x01"` is the begin of TLS on the wrong port): such lines
//! are well-formed, and their method is [`Method::None`].

/// The expected text at the position of an error.
pub(crate) type Expected = &'static str;

/// The expectation for a line that does not fit a chunk.
pub(crate) const SHORTER_LINE: Expected = "a line shorter than a chunk";

/// The counted parts of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record<'l> {
    pub(crate) method: Method,
    /// Without the query; `None` if the request is none.
    pub(crate) path: Option<&'l [u8]>,
    pub(crate) status: Status,
    /// Size of the response's body.
    pub(crate) bytes: u64,
}

/// The class of a status: its first digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u8);

impl Status {
    /// The classes by first digit. Servers log 000 if a client went away before there was a
    /// response.
    pub(crate) const NAMES: [&str; 10] =
        ["0xx", "1xx", "2xx", "3xx", "4xx", "5xx", "6xx", "7xx", "8xx", "9xx"];
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Patch,
    /// Any other.
    Other,
    /// The request is none.
    None,
}

impl Method {
    /// The names in the order of the methods.
    pub(crate) const NAMES: [&str; 9] =
        ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "other", "none"];

    fn of(name: &[u8]) -> Method {
        match name {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"PATCH" => Method::Patch,
            _ => Method::Other,
        }
    }
}

/// Reads a line, with or without its end.
pub(crate) fn parse(line: &[u8]) -> Result<Record<'_>, Expected> {
    let mut fields = Fields { rest: line.trim_ascii_end() };
    fields.word().ok_or("a host")?;
    fields.word().ok_or("an identity, or -")?;
    fields.word().ok_or("a user, or -")?;
    fields.bracketed().ok_or("a time in brackets")?;
    let request = fields.quoted().ok_or("a request in quotes")?;
    let status = fields.word().and_then(status).ok_or("a status of three digits")?;
    let bytes = fields.word().and_then(bytes).ok_or("a number of bytes, or -")?;
    fields.quoted().ok_or("a referer in quotes")?;
    fields.quoted().ok_or("a user agent in quotes")?;
    if !fields.rest.is_empty() {
        return Err("the end of the line");
    }
    let (method, path) = method_and_path(request);
    Ok(Record { method, path, status, bytes })
}

/// The rest of a line.
struct Fields<'l> {
    rest: &'l [u8],
}

impl<'l> Fields<'l> {
    /// Returns the next field up to a space.
    fn word(&mut self) -> Option<&'l [u8]> {
        let end = self.rest.iter().position(|&byte| byte == b' ').unwrap_or(self.rest.len());
        self.take(0, end, end)
    }

    fn bracketed(&mut self) -> Option<&'l [u8]> {
        let end = self.rest.iter().position(|&byte| byte == b']')?;
        (self.rest[0] == b'[').then(|| self.take(1, end, end + 1))?
    }

    fn quoted(&mut self) -> Option<&'l [u8]> {
        let inside = self.rest.strip_prefix(b"\"")?;
        let mut escaped = false;
        let length = inside.iter().position(|&byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        self.take(1, 1 + length, length + 2)
    }

    /// Takes the bytes from `from` to `to` and goes on at `next`, behind a space or the end of the
    /// line. Only what stands in quotes or brackets may be empty.
    fn take(&mut self, from: usize, to: usize, next: usize) -> Option<&'l [u8]> {
        let field = &self.rest[from..to];
        self.rest = match &self.rest[next..] {
            [] if next > 0 => &[],
            [b' ', rest @ ..] if next > 0 => rest,
            _ => return None,
        };
        Some(field)
    }
}

fn status(word: &[u8]) -> Option<Status> {
    let three_digits = word.len() == 3 && word.iter().all(u8::is_ascii_digit);
    three_digits.then(|| Status(word[0] - b'0'))
}

fn bytes(word: &[u8]) -> Option<u64> {
    if word == b"-" {
        return Some(0);
    }
    // More than a counter can add is no number of bytes.
    let number: i64 = str::from_utf8(word).ok()?.parse().ok()?;
    u64::try_from(number).ok().filter(|_| word[0] != b'+')
}

/// Parses `GET /path?query HTTP/1.1`; the oldest clients send no version.
fn method_and_path(request: &[u8]) -> (Method, Option<&[u8]>) {
    let mut words = request.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return (Method::None, None);
    };
    let path = target.split(|&byte| byte == b'?').next().unwrap_or(target);
    (Method::of(method), Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif?x=1 HTTP/1.0" 200 2326 "http://a/" "A \"quoted\" agent""#;

    #[test]
    fn a_line_is_read() {
        let expected =
            Record { method: Method::Get, path: Some(b"/a.gif"), status: Status(2), bytes: 2326 };
        for end in ["", "\n", "\r\n"] {
            assert_eq!(parse(format!("{LINE}{end}").as_bytes()).as_ref(), Ok(&expected));
        }
    }

    #[test]
    fn what_is_no_request_is_counted_as_none() {
        for request in ["", "-", r"\x16\x03\x01", "GET", r#"say \"hello\"!"#] {
            let line = LINE.replace("GET /a.gif?x=1 HTTP/1.0", request);
            let record = parse(line.as_bytes()).expect("well-formed");
            let none = !request.contains(' ');
            assert_eq!((record.method == Method::None, record.path.is_none()), (none, none));
        }
    }

    #[test]
    fn methods_have_their_names() {
        let names = &Method::NAMES[..Method::Other as usize];
        let right = names.iter().enumerate().all(|(n, it)| Method::of(it.as_bytes()) as usize == n);
        assert!(right);
        assert_eq!(Method::NAMES[Method::None as usize], "none");
    }

    #[test]
    fn a_malformed_line_says_what_was_expected() {
        let cases = [
            ("", "a host"),
            (" - frank", "a host"),
            ("127.0.0.1", "an identity, or -"),
            ("127.0.0.1 - frank 200", "a time in brackets"),
            (&LINE.replace("] ", "]"), "a time in brackets"),
            (&LINE.replace("\"GET", "GET"), "a request in quotes"),
            (&LINE.replace(" 200 ", " 2000 "), "a status of three digits"),
            (&LINE.replace("2326", "-7"), "a number of bytes, or -"),
            (&LINE.replace("2326", "9223372036854775808"), "a number of bytes, or -"),
            (&LINE.replace("\"http://a/\"", "-"), "a referer in quotes"),
            (&LINE[..LINE.len() - 1], "a user agent in quotes"),
            (&format!("{LINE} more"), "the end of the line"),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line.as_bytes()), Err(expected), "{line}");
        }
    }

    #[test]
    fn no_beginning_of_a_line_is_a_record() {
        for end in 0..LINE.len() {
            assert!(parse(&LINE.as_bytes()[..end]).is_err(), "{}", &LINE[..end]);
        }
    }
}
