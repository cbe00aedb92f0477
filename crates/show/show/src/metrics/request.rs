//! What a request asks for, and what is answered.
//!
//! Invariant: pure. Only two pages exist, and they are only read.

/// Longest head of a request, in bytes; browsers and Prometheus send less than 1 KiB.
pub(crate) const HEAD_BYTES_MAX: usize = 8192;

/// Most header lines.
const HEADERS_MAX: usize = 64;

/// What a head of a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedPage {
    /// The metrics.
    Metrics,
    /// The page that names the other one.
    Index,
    /// A page that does not exist.
    Unknown,
    /// Anything but reading.
    OtherMethod,
    /// No request.
    Malformed,
    /// More than is read.
    TooLong,
}

/// What the bytes so far ask for; nothing while more must come.
pub(crate) fn asked(head: &[u8]) -> Option<AskedPage> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() >= HEAD_BYTES_MAX => {
            return Some(AskedPage::TooLong);
        }
        Ok(httparse::Status::Partial) => return None,
        Err(httparse::Error::TooManyHeaders) => return Some(AskedPage::TooLong),
        Err(_) => return Some(AskedPage::Malformed),
    }
    if request.method != Some("GET") {
        return Some(AskedPage::OtherMethod);
    }
    let path = request.path.unwrap_or_default();
    Some(match path.split('?').next() {
        Some("/metrics") => AskedPage::Metrics,
        Some("/") => AskedPage::Index,
        _ => AskedPage::Unknown,
    })
}

/// The page at the top.
const INDEX: &str = "<!doctype html>\n<title>iostrata</title>\n\
                     <h1>iostrata watch</h1>\n<p><a href=\"/metrics\">Metrics</a></p>\n";

/// The answer in full; the connection ends with it.
pub(crate) fn answer(asked: AskedPage, metrics: impl FnOnce() -> String) -> Vec<u8> {
    const TEXT: &str = "text/plain; charset=utf-8";
    let (status, kind, body) = match asked {
        AskedPage::Metrics => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics()),
        AskedPage::Index => ("200 OK", "text/html; charset=utf-8", INDEX.to_owned()),
        AskedPage::Unknown => ("404 Not Found", TEXT, "there are / and /metrics\n".to_owned()),
        AskedPage::OtherMethod => {
            ("405 Method Not Allowed\r\nAllow: GET", TEXT, "only GET\n".to_owned())
        }
        AskedPage::Malformed => ("400 Bad Request", TEXT, "this is no HTTP request\n".to_owned()),
        AskedPage::TooLong => {
            ("431 Request Header Fields Too Large", TEXT, "the request is too long\n".to_owned())
        }
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\nX-Content-Type-Options: nosniff\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_pages_are_read() {
        let of = |text: &str| asked(text.as_bytes());
        assert_eq!(of("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Some(AskedPage::Metrics));
        assert_eq!(of("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), Some(AskedPage::Metrics));
        assert_eq!(of("GET / HTTP/1.1\r\n\r\n"), Some(AskedPage::Index));
        assert_eq!(of("GET /metrics/../etc HTTP/1.1\r\n\r\n"), Some(AskedPage::Unknown));
        for method in ["POST", "HEAD", "DELETE"] {
            let text = format!("{method} /metrics HTTP/1.1\r\n\r\n");
            assert_eq!(of(&text), Some(AskedPage::OtherMethod));
        }
        assert_eq!(of("GET /metrics HTTP/1.1\r\nHost"), None);
        assert_eq!(of("\u{1}\u{2}\r\n\r\n"), Some(AskedPage::Malformed));
        assert_eq!(of(&format!("GET /{}", "a".repeat(HEAD_BYTES_MAX))), Some(AskedPage::TooLong));
        let many = "A: b\r\n".repeat(HEADERS_MAX + 1);
        assert_eq!(of(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Some(AskedPage::TooLong));
    }

    #[test]
    fn the_length_is_that_of_the_body() {
        let text =
            String::from_utf8(answer(AskedPage::Metrics, || "\u{e9} 1\n".to_owned())).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("\r\nContent-Length: 5\r\n") && body.len() == 5, "{text}");
        let text = String::from_utf8(answer(AskedPage::OtherMethod, String::new)).unwrap();
        assert!(text.starts_with("HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\n"), "{text}");
    }
}
