//! The receiver of messages: one attempt to send a message.

use std::io;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use prost::Message;
use ureq::http::header::{CONTENT_TYPE, RETRY_AFTER};
use ureq::http::{HeaderName, HeaderValue, Response, Uri};
use ureq::{Agent, Body};

use crate::error::Error;

const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
const PROTOBUF: &str = "application/x-protobuf";

/// Maximum number of bytes that are read of an answer. An answer is empty, or describes an error in
/// a sentence.
const LONGEST_ANSWER: u64 = 64 << 10;
/// Maximum number of its characters in an error.
const TOLD: usize = 200;

pub(crate) struct Receiver {
    agent: Agent,
    endpoint: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The result of an attempt.
pub(crate) enum Attempt {
    /// The message was received, possibly with an error to report.
    Received(Option<Error>),
    Failed {
        error: Error,
        again: Again,
    },
}

/// The conditions for another attempt.
pub(crate) enum Again {
    Never,
    /// After the time that the receiver requests, if any.
    After(Option<Duration>),
}

impl Receiver {
    pub(crate) fn new(endpoint: &str, headers: &[(String, String)]) -> io::Result<Receiver> {
        let endpoint = valid(endpoint)?;
        let headers = headers.iter().map(|(name, value)| header(name, value));
        let headers = headers.collect::<io::Result<_>>()?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(USER_AGENT);
        #[cfg(feature = "otlp-tls")]
        let config = match endpoint.scheme_str() {
            Some("https") => config.tls_config(super::tls::config()?),
            _ => config,
        };
        Ok(Receiver { agent: config.build().into(), endpoint, headers })
    }

    pub(crate) fn post(&self, message: &[u8], timeout: Duration) -> Attempt {
        let mut request = self.agent.post(&self.endpoint).header(CONTENT_TYPE, PROTOBUF);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.config().timeout_global(Some(timeout)).build();
        match request.send(message) {
            Ok(response) => answered(response),
            Err(error) => unreachable(&error),
        }
    }
}

fn valid(endpoint: &str) -> io::Result<Uri> {
    let uri: Uri = endpoint.parse().map_err(|error| invalid(format!("{endpoint}: {error}")))?;
    let has_scheme = |scheme| uri.scheme_str() == Some(scheme);
    // #[gamma::skip(logical.and_remove_left, reason = "the feature is on in the tests of all features")]
    let is_known = has_scheme("http") || cfg!(feature = "otlp-tls") && has_scheme("https");
    if !is_known {
        return Err(invalid(format!(
            "{endpoint}: no http://, nor https:// with the feature otlp-tls"
        )));
    }
    Ok(uri)
}

fn header(name: &str, value: &str) -> io::Result<(HeaderName, HeaderValue)> {
    let (key, value) = (HeaderName::try_from(name), HeaderValue::try_from(value));
    // The value of a header may be a secret, so the error does not contain it.
    key.ok().zip(value.ok()).ok_or_else(|| invalid(format!("the header {name:?} is not valid")))
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn unreachable(error: &ureq::Error) -> Attempt {
    use ureq::Error::{ConnectionFailed, HostNotFound, Io, Protocol, Timeout};
    let may_pass =
        matches!(error, ConnectionFailed | HostNotFound | Io(_) | Protocol(_) | Timeout(_));
    let again = if may_pass { Again::After(None) } else { Again::Never };
    Attempt::Failed { error: Error::Unreachable(error.to_string()), again }
}

fn answered(mut response: Response<Body>) -> Attempt {
    let status = response.status().as_u16();
    let again = match status {
        429 | 502 | 503 | 504 => Again::After(retry_after(&response)),
        _ => Again::Never,
    };
    // #[gamma::skip(expr, reason = "an answer of another byte is as good")]
    let answer = response.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec();
    if response.status().is_success() {
        return Attempt::Received(answer.map_or_else(
            |error| Some(Error::Answer(error.to_string())),
            |answer| complaint(&answer),
        ));
    }
    let answer = beginning(&answer.unwrap_or_default());
    Attempt::Failed { error: Error::Refused { status, answer }, again }
}

/// Returns the value of `Retry-After` in seconds. A date is ignored.
fn retry_after<T>(response: &Response<T>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Returns the error in an answer that accepts the message, if any.
fn complaint(answer: &[u8]) -> Option<Error> {
    match ExportMetricsServiceResponse::decode(answer) {
        Ok(answer) => {
            let partly = answer.partial_success?;
            let (points, answer) = (partly.rejected_data_points, partly.error_message);
            (points != 0 || !answer.is_empty()).then_some(Error::PartlyRefused { points, answer })
        }
        Err(error) => Some(Error::Answer(error.to_string())),
    }
}

fn beginning(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    text.chars()
        .filter(|c| !c.is_control() && *c != char::REPLACEMENT_CHARACTER)
        .take(TOLD)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_and_headers_are_looked_at_first() {
        for endpoint in ["", "localhost:4318", "ftp://localhost", "http://", "/v1/metrics"] {
            assert!(Receiver::new(endpoint, &[]).is_err(), "{endpoint}");
        }
        let local = "http://localhost:4318/v1/metrics";
        assert!(Receiver::new(local, &[]).is_ok());
        let refused = valid("https://localhost").is_err();
        assert_eq!(refused, cfg!(not(feature = "otlp-tls")));
        let with = |name: &str, value: &str| {
            Receiver::new(local, &[(name.to_owned(), value.to_owned())]).map(|_| ())
        };
        assert!(with("x-key", "secret").is_ok() && with("x key", "secret").is_err());
        let error = with("x-key", "sec\nret").expect_err("no value of a header");
        assert!(!error.to_string().contains("sec"), "{error}");
    }

    #[test]
    fn what_may_pass_is_tried_again_when_the_receiver_says() {
        use ureq::Error::{BadUri, ConnectionFailed, HostNotFound, Io, TooManyRedirects};
        let io = io::Error::from(io::ErrorKind::ConnectionReset);
        for (error, may_pass) in [
            (ConnectionFailed, true),
            (HostNotFound, true),
            (Io(io), true),
            (ureq::Error::Timeout(ureq::Timeout::Global), true),
            (TooManyRedirects, false),
            (BadUri("x".to_owned()), false),
        ] {
            let Attempt::Failed { error: told, again } = unreachable(&error) else {
                panic!("{error}")
            };
            assert_eq!(told, Error::Unreachable(error.to_string()));
            assert_eq!(matches!(again, Again::After(None)), may_pass, "{error}");
        }
        for (value, expected) in [
            (Some(&b" 3 "[..]), Some(3)),
            (Some(b"0"), Some(0)),
            (Some(b"Fri, 27 Nov 2026 12:00:00 GMT"), None),
            (Some(b"\xff"), None),
            (None, None),
        ] {
            let mut response = Response::new(());
            if let Some(value) = value {
                let value = HeaderValue::from_bytes(value).expect("a value");
                response.headers_mut().insert(RETRY_AFTER, value);
            }
            assert_eq!(retry_after(&response), expected.map(Duration::from_secs), "{value:?}");
        }
    }

    #[test]
    fn what_an_answer_complains_about_is_told() {
        use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsPartialSuccess;
        for (points, text) in [(0, ""), (1, ""), (-1, ""), (0, "why"), (2, "why")] {
            let (rejected_data_points, error_message) = (points, text.to_owned());
            let partly = ExportMetricsPartialSuccess { rejected_data_points, error_message };
            let answer = ExportMetricsServiceResponse { partial_success: Some(partly) };
            let expected = Error::PartlyRefused { points, answer: text.to_owned() };
            let expected = (points != 0 || text == "why").then_some(expected);
            assert_eq!(complaint(&answer.encode_to_vec()), expected);
        }
        assert_eq!(complaint(&[]), None);
        assert!(matches!(complaint(&[7]), Some(Error::Answer(_))));
    }

    #[test]
    fn only_text_of_an_answer_is_told() {
        assert_eq!(beginning(b"\x08\x03\x12\x05wrong\xff\n"), "wrong");
        assert_eq!(beginning(&[b'a'; 1000]).len(), TOLD);
    }
}
