//! Addresses that may be fetched: a strict subset of URLs, and the list of
//! hosts that the configuration allows.
//!
//! What is checked here and what the host's client then asks must be the same
//! machine, so an address with anything that two parsers might read in two
//! ways (user names, backslashes, control characters, numbers that stand for
//! an address, letters beyond ASCII in the host) is refused, and the request
//! is written anew from the parts that were checked.

use std::fmt;

/// Longest address.
const MAX_BYTES: usize = 8192;

/// An `http` or `https` address in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    secure: bool,
    /// Lower case; an IPv6 address with its brackets.
    host: String,
    port: u16,
    /// Path and query; begins with `/`.
    target: String,
}

impl Address {
    /// Reads an address, or says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > MAX_BYTES {
            return Err(format!("the address has more than {MAX_BYTES} bytes"));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!("{text:?} is not an absolute http or https address"));
        };
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => {
                return Err(format!(
                    "{scheme}: only http and https addresses can be fetched"
                ));
            }
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let (host, port) = authority_of(authority)?;
        Ok(Self {
            secure,
            host,
            port: port.unwrap_or(if secure { 443 } else { 80 }),
            target: target_of(target)?,
        })
    }

    /// Where `location`, given in an answer from here, leads.
    pub(super) fn follow(&self, location: &str) -> Result<Self, String> {
        let location = location.trim();
        let scheme = if self.secure { "https" } else { "http" };
        let next = if let Some(rest) = location.strip_prefix("//") {
            Self::parse(&format!("{scheme}://{rest}"))?
        } else if has_scheme(location) {
            Self::parse(location)?
        } else {
            let path_end = self.target.find('?').unwrap_or(self.target.len());
            let path = &self.target[..path_end];
            let target = match location.chars().next() {
                None | Some('#') => self.target.clone(),
                Some('/') => location.to_owned(),
                Some('?') => format!("{path}{location}"),
                Some(_) => {
                    let directory = path.rfind('/').map_or("", |end| &path[..end]);
                    format!("{directory}/{location}")
                }
            };
            Self {
                target: target_of(&target)?,
                ..self.clone()
            }
        };
        if self.secure && !next.secure {
            return Err(format!(
                "{self} leads to {next}, which is not encrypted; such a redirect is not followed"
            ));
        }
        Ok(next)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default) = if self.secure {
            ("https", 443)
        } else {
            ("http", 80)
        };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port != default {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.target)
    }
}

fn has_scheme(text: &str) -> bool {
    let scheme = text.split([':', '/', '?', '#']).next().unwrap_or("");
    text[scheme.len()..].starts_with(':')
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Host and port of `host`, `host:port` or `[v6]:port`.
fn authority_of(authority: &str) -> Result<(String, Option<u16>), String> {
    let wrong = |reason: &str| Err(format!("host {authority:?}: {reason}"));
    if authority.contains('@') {
        return wrong("addresses with a user name are refused");
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((inside, after)) => {
                let hex = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
                if inside.is_empty() || !inside.chars().all(hex) {
                    return wrong("not an IPv6 address");
                }
                let port = match after {
                    "" => None,
                    after => Some(after.strip_prefix(':').unwrap_or("x")),
                };
                (format!("[{inside}]"), port)
            }
            None => return wrong("a bracket is not closed"),
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (authority.to_owned(), None),
        },
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    if host.is_empty() || host.len() > 255 || !host.chars().all(plain) {
        return wrong("only letters, digits, dots and hyphens; write other letters as xn--…");
    }
    // A last part that is a number makes the whole an address, in ways that
    // differ (`0x7f.1`, `2130706433`); only the plain one passes.
    let last = host.rsplit('.').next().unwrap_or("");
    let number = last.starts_with("0x") || last.bytes().all(|b| b.is_ascii_digit());
    if number && ipv4(&host).is_none() {
        return wrong("not an IPv4 address in its usual form");
    }
    let port = match port {
        None | Some("") => None,
        Some(port) => match port.parse::<u16>() {
            Ok(port) if port > 0 => Some(port),
            _ => return wrong("the port is not a number from 1 to 65535"),
        },
    };
    Ok((host, port))
}

fn ipv4(host: &str) -> Option<[u8; 4]> {
    let mut parts = [0; 4];
    let mut given = host.split('.');
    for part in &mut parts {
        let text = given.next()?;
        *part = text.parse().ok()?;
        // No `+1`, no leading zeros: they would be octal elsewhere.
        if *text != part.to_string() {
            return None;
        }
    }
    given.next().is_none().then_some(parts)
}

/// Path and query without the fragment, with what must not stand there escaped.
fn target_of(text: &str) -> Result<String, String> {
    let text = text.split('#').next().unwrap_or("");
    let mut target = String::new();
    if !text.starts_with('/') {
        target.push('/');
    }
    for c in text.chars() {
        match c {
            c if c.is_control() => {
                return Err("the address holds a control character".to_owned());
            }
            ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' => {
                target.push_str(&format!("%{:02X}", c as u32));
            }
            c if c.is_ascii() => target.push(c),
            c => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    target.push_str(&format!("%{byte:02X}"));
                }
            }
        }
    }
    Ok(target)
}

/// The hosts that `web_fetch` may ask.
///
/// An entry is a host (`docs.rs`), a domain with everything below it
/// (`*.rust-lang.org`, which is not `rust-lang.org` itself), or `*`: every
/// host but those that are inside a network by their name or number
/// (`localhost`, `10.1.2.3`, a name without a dot). Each may end in `:port`, or
/// in `:*` for every port; without, only the usual port of the scheme is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostList(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    host: Pattern,
    port: Port,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    /// Of the scheme.
    Usual,
    One(u16),
    Any,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Any,
    Below(String),
    Host(String),
}

impl HostList {
    /// Reads the entries; the error names the one that is none.
    pub(crate) fn parse(entries: &[String]) -> Result<Self, String> {
        let entries = entries.iter().map(|entry| {
            let wrong = |reason: String| format!("`{entry}` is no host to allow: {reason}");
            let (host, any_port) = match entry.strip_suffix(":*") {
                Some(host) => (host, true),
                None => (entry.as_str(), false),
            };
            let port = |port: Option<u16>| match port {
                _ if any_port => Port::Any,
                Some(port) => Port::One(port),
                None => Port::Usual,
            };
            let (below, rest) = match host.strip_prefix("*.") {
                Some(rest) => (true, rest),
                None => (false, host),
            };
            if let Some(after) = rest.strip_prefix('*')
                && !below
            {
                let one = match after.strip_prefix(':') {
                    None if after.is_empty() => None,
                    Some(one) => Some(one.parse().map_err(|_| wrong("bad port".to_owned()))?),
                    None => return Err(wrong("`*` stands alone or before a dot".to_owned())),
                };
                let (host, port) = (Pattern::Any, port(one));
                return Ok(Entry { host, port });
            }
            if rest.contains(['/', '*']) {
                let reason = "give the host alone, such as docs.rs or *.python.org";
                return Err(wrong(reason.to_owned()));
            }
            let (host, one) = authority_of(rest).map_err(wrong)?;
            if any_port && one.is_some() {
                return Err(wrong("it has two ports".to_owned()));
            }
            let host = if below {
                Pattern::Below(format!(".{host}"))
            } else {
                Pattern::Host(host)
            };
            let port = port(one);
            Ok(Entry { host, port })
        });
        entries.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn check(&self, address: &Address) -> Result<(), String> {
        let usual = if address.secure { 443 } else { 80 };
        let allowed = self.0.iter().any(|entry| {
            let host = match &entry.host {
                Pattern::Any => !is_inside(&address.host),
                Pattern::Below(domain) => address.host.ends_with(domain),
                Pattern::Host(host) => address.host == *host,
            };
            let port = match entry.port {
                Port::Usual => address.port == usual,
                Port::One(port) => address.port == port,
                Port::Any => true,
            };
            host && port
        });
        if allowed {
            return Ok(());
        }
        let port = match address.port {
            port if port == usual => String::new(),
            port => format!(":{port}"),
        };
        Err(format!(
            "host {}{port} is not allowed; allowed are {self}",
            address.host
        ))
    }
}

impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            match &entry.host {
                Pattern::Any => f.write_str("*")?,
                Pattern::Below(domain) => write!(f, "*{domain}")?,
                Pattern::Host(host) => f.write_str(host)?,
            }
            match entry.port {
                Port::Usual => {}
                Port::One(port) => write!(f, ":{port}")?,
                Port::Any => f.write_str(":*")?,
            }
        }
        Ok(())
    }
}

/// Whether a host is inside a network by what it is called. A name that leads
/// inside only when it is looked up cannot be known here.
fn is_inside(host: &str) -> bool {
    if let Some([a, b, ..]) = ipv4(host) {
        return match (a, b) {
            (0 | 10 | 127, _) | (169, 254) | (192, 168) => true,
            (100, b) => (64..128).contains(&b),
            (172, b) => (16..32).contains(&b),
            (a, _) => a >= 224,
        };
    }
    // No IPv6 number: few name a public server by it, and many forms lead inside.
    let inside = [
        "localhost",
        "local",
        "internal",
        "lan",
        "home.arpa",
        "intranet",
    ];
    host.starts_with('[')
        || !host.contains('.')
        || inside.iter().any(|end| {
            host.strip_suffix(end)
                .is_some_and(|rest| rest.ends_with('.'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let actual = Address::parse(text).map(|address| address.to_string());
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(actual, expected, "{text}");
    }

    fn refused(text: &str, reason: &str) {
        let error = Address::parse(text).expect_err(text);
        assert!(error.contains(reason), "{text}: {error}");
    }

    #[test]
    fn addresses() {
        check("https://docs.rs", Ok("https://docs.rs/"));
        check(" HTTPS://Docs.RS./a?b=c#d ", Ok("https://docs.rs/a?b=c"));
        check("http://x.org:80/", Ok("http://x.org/"));
        check("http://x.org:8080?q", Ok("http://x.org:8080/?q"));
        check("http://[::1]:3000/a", Ok("http://[::1]:3000/a"));
        check("https://x.org/a b/ü|", Ok("https://x.org/a%20b/%C3%BC%7C"));
        check("https://127.0.0.1/", Ok("https://127.0.0.1/"));
    }

    #[test]
    fn addresses_that_could_be_read_in_two_ways() {
        refused("docs.rs", "not an absolute http or https address");
        refused("file:///etc/passwd", "only http and https");
        refused("https://docs.rs@evil.org/", "user name");
        refused("https://evil.org\\@docs.rs/", "user name");
        refused("https://evil.org\\.docs.rs/", "only letters");
        refused("https://bücher.de/", "xn--");
        refused("https://do\tcs.rs/", "only letters");
        refused("https:///docs.rs", "only letters");
        refused("https://docs.rs/\u{7f}", "control character");
        refused("http://2130706433/", "IPv4");
        refused("http://0x7f.0.0.1/", "IPv4");
        refused("http://127.1/", "IPv4");
        refused("http://127.0.0.01/", "IPv4");
        refused("http://x.0x1/", "IPv4");
        refused("https://docs.rs:0/", "port");
        refused("https://docs.rs:99999/", "port");
        refused("https://[::1", "bracket");
        refused("https://[x]/", "IPv6");
        refused(&format!("https://x.org/{}", "a".repeat(9000)), "8192");
    }

    #[test]
    fn redirects() {
        let from = Address::parse("https://x.org/a/b?c").expect("an address");
        for (location, expected) in [
            ("https://y.org/z", "https://y.org/z"),
            ("//y.org", "https://y.org/"),
            ("/z", "https://x.org/z"),
            ("z?q", "https://x.org/a/z?q"),
            ("?q", "https://x.org/a/b?q"),
            ("#f", "https://x.org/a/b?c"),
            ("", "https://x.org/a/b?c"),
        ] {
            let next = from.follow(location).map(|next| next.to_string());
            assert_eq!(next.as_deref(), Ok(expected), "{location}");
        }
        for (location, reason) in [
            ("http://x.org/", "not encrypted"),
            ("ftp://x.org/", "only http and https"),
            ("javascript:alert(1)", "not an absolute"),
        ] {
            let error = from.follow(location).expect_err(location);
            assert!(error.contains(reason), "{location}: {error}");
        }
    }

    fn list(entries: &[&str]) -> Result<HostList, String> {
        let entries: Vec<_> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        HostList::parse(&entries)
    }

    fn check_host(entries: &[&str], address: &str, allowed: bool) {
        let list = list(entries).expect("a good list");
        let address = Address::parse(address).expect("an address");
        assert_eq!(
            list.check(&address).is_ok(),
            allowed,
            "{entries:?} {address}"
        );
    }

    #[test]
    fn hosts() {
        let entries = ["docs.rs", "*.python.org", "127.0.0.1:8080"];
        check_host(&entries, "https://docs.rs/x", true);
        check_host(&entries, "http://docs.rs/x", true);
        check_host(&entries, "https://DOCS.rs./x", true);
        check_host(&entries, "https://docs.rs:8443/x", false);
        check_host(&entries, "https://a.docs.rs/x", false);
        check_host(&entries, "https://mydocs.rs/x", false);
        check_host(&entries, "https://docs.python.org/", true);
        check_host(&entries, "https://a.b.python.org/", true);
        check_host(&entries, "https://python.org/", false);
        check_host(&entries, "https://evilpython.org/", false);
        check_host(&entries, "http://127.0.0.1:8080/", true);
        check_host(&entries, "http://127.0.0.1/", false);
        check_host(&[], "https://docs.rs/", false);
    }

    #[test]
    fn every_host_is_every_public_host() {
        check_host(&["*"], "https://docs.rs/", true);
        check_host(&["*"], "http://8.8.8.8/", true);
        check_host(&["*:8080"], "http://x.org:8080/", true);
        check_host(&["*"], "http://x.org:8080/", false);
        check_host(&["*:*"], "http://x.org:8080/", true);
        check_host(&["*:*"], "http://localhost:8080/", false);
        check_host(&["localhost:*"], "http://localhost:8080/", true);
        check_host(&["localhost:*"], "http://localhost/", true);
        check_host(&["localhost:*"], "http://other:8080/", false);
        for host in [
            "localhost",
            "router",
            "a.localhost",
            "x.internal",
            "printer.local",
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.9.9",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "[::1]",
            "[fd00::1]",
            "[::ffff:10.0.0.1]",
        ] {
            check_host(&["*"], &format!("http://{host}/"), false);
            check_host(&["*", host], &format!("http://{host}/"), true);
        }
    }

    #[test]
    fn entries_that_are_no_hosts() {
        for (entry, reason) in [
            ("https://docs.rs", "give the host alone"),
            ("a.*.org", "give the host alone"),
            ("*x", "stands alone or before a dot"),
            ("docs.rs:80:*", "two ports"),
            ("", "only letters"),
            ("docs.rs:x", "port"),
            ("u@docs.rs", "user name"),
        ] {
            let error = list(&[entry]).expect_err(entry);
            assert!(error.contains(reason), "{entry}: {error}");
            assert!(error.contains(&format!("`{entry}`")), "{error}");
        }
    }
}
