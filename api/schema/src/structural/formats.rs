//! The `format`s of strings that an API server checks; others are ignored.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use regex::Regex;

/// Whether strings of this format are checked at all. Dashes do not count: `date-time` is `datetime`.
pub fn is_known(format: &str) -> bool {
    checker(format).is_some()
}

/// Whether a string is of a format; every string is of an unknown one.
pub fn holds(format: &str, text: &str) -> bool {
    checker(format).is_none_or(|check| check(text))
}

type Check = fn(&str) -> bool;

fn checker(format: &str) -> Option<Check> {
    let check: Check = match format.replace('-', "").as_str() {
        "date" => is_date,
        "datetime" => is_date_time,
        "duration" => is_duration,
        "byte" => is_base64,
        "ipv4" => |text| text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => |text| text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "mac" => is_mac,
        "uri" => is_uri,
        "email" => is_email,
        "hostname" => is_hostname,
        "uuid" => |text| UUID.is_match(text),
        "uuid3" => |text| UUID3.is_match(text),
        "uuid4" => |text| UUID4.is_match(text),
        "uuid5" => |text| UUID5.is_match(text),
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |text| SSN.is_match(text),
        "hexcolor" => |text| HEX_COLOR.is_match(text),
        "rgbcolor" => |text| RGB_COLOR.is_match(text),
        "password" => |_| true,
        _ => return None,
    };
    Some(check)
}

macro_rules! expressions {
    ($($name:ident = $expression:literal;)*) => {
        // An expression that does not compile matches nothing; the tests see that all of them do.
        $(static $name: LazyLock<Expression> = LazyLock::new(|| Expression(Regex::new($expression).ok()));)*
    };
}

struct Expression(Option<Regex>);

impl Expression {
    fn is_match(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

expressions! {
    UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    CREDIT_CARD = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$";
    SSN = "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*\)$";
    TIME_OF_DAY = r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$";
    GO_DURATION = r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
    WORDED_DURATION = r"(?i)[0-9]+\s*(ns|nano|us|µs|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|wk|week)";
    HOSTNAME = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |part: &str, digits: usize| {
        (part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| part.parse::<u32>().ok())
            .flatten()
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.split_once('t').is_some_and(|(date, time)| is_date(date) && TIME_OF_DAY.is_match(time))
}

/// Whether a text is a duration as Go and CEL read it, such as `1h30m`.
#[cfg(feature = "cel")]
pub(crate) fn is_go_duration(text: &str) -> bool {
    GO_DURATION.is_match(text)
}

fn is_duration(text: &str) -> bool {
    GO_DURATION.is_match(text) || WORDED_DURATION.is_match(text)
}

fn is_base64(text: &str) -> bool {
    let text: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    text.len().is_multiple_of(4)
        && padding <= 2
        && text[..text.len() - padding].iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let max = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    !bits.is_empty()
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && bits.parse::<u8>().is_ok_and(|bits| bits <= max)
}

fn is_mac(text: &str) -> bool {
    let is_group =
        |group: &str, digits: usize| group.len() == digits && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let of = |separator: char, digits: usize| {
        let groups: Vec<&str> = text.split(separator).collect();
        groups.iter().all(|group| is_group(group, digits)) && matches!(groups.len() * digits, 12 | 16 | 40)
    };
    of(':', 2) || of('-', 2) || of('.', 4)
}

fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|character| character.is_ascii_control()) {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}

/// An address, optionally behind a name: `Ann <ann@example.com>`.
fn is_email(text: &str) -> bool {
    let address = match text.trim().split_once('<') {
        Some((_, rest)) => match rest.strip_suffix('>') {
            Some(address) => address,
            None => return false,
        },
        None => text.trim(),
    };
    let atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte) || byte >= 0x80;
    let dotted = |part: &str| {
        !part.is_empty()
            && part.bytes().all(atom)
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.contains("..")
    };
    address.rsplit_once('@').is_some_and(|(local, domain)| dotted(local) && dotted(domain))
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

fn digits_of(text: &str) -> Vec<char> {
    text.chars().filter(|character| !matches!(character, ' ' | '-' | '\t' | '\n')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = digits_of(text);
    if digits.len() != 10 {
        return false;
    }
    let mut sum = 0;
    for (place, digit) in (1u32..).zip(&digits) {
        match (digit.to_digit(10), place) {
            (Some(value), _) => sum += place * value,
            (None, 10) if matches!(digit, 'X' | 'x') => sum += 100,
            _ => return false,
        }
    }
    sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = digits_of(text).iter().map(|digit| digit.to_digit(10)).collect();
    digits.is_some_and(|digits| {
        let sum: u32 = digits.iter().zip([1, 3].iter().cycle()).map(|(digit, weight)| digit * weight).sum();
        digits.len() == 13 && sum.is_multiple_of(10)
    })
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum: u32 = digits
        .chars()
        .rev()
        .filter_map(|digit| digit.to_digit(10))
        .zip([1, 2].iter().cycle())
        .map(|(digit, weight)| if digit * weight > 9 { digit * weight - 9 } else { digit * weight })
        .sum();
    CREDIT_CARD.is_match(&digits) && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_and_refuse() {
        let table: [(&str, &[&str], &[&str]); 24] = [
            ("date", &["2020-02-29"], &["2021-02-29", "2020-1-01", "2020-13-01", "x"]),
            (
                "date-time",
                &["2020-01-01T00:00:00Z", "2020-01-01t10:00:00.5+02:00"],
                &["yesterday", "2020-01-01", "2020-01-01T24:00:00Z", "2020-01-01T00:00:00"],
            ),
            ("duration", &["1h30m", "22 ns", "0", "3 days", "-1.5s"], &["", "x", "1"]),
            ("byte", &["", "dg==", "AAAA"], &["a", "a===", "!!!!"]),
            ("ipv4", &["10.0.0.1"], &["10.0.0", "::1"]),
            ("ipv6", &["::1"], &["10.0.0.1", ":"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8"]),
            ("mac", &["01:23:45:67:89:ab", "0123.4567.89ab"], &["01:23", "01:23:45:67:89:zz"]),
            ("uri", &["http://a/b", "/a", "urn:x"], &["", "a b", "a"]),
            ("email", &["a@b.c", "Ann <a@b.c>"], &["a", "a@", "a b@c"]),
            ("hostname", &["a.example.com", "a"], &["-a", "a..b", "", "a.b", "a_b"]),
            ("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123e4567"]),
            ("uuid3", &["123e4567-e89b-32d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-42d3-c456-426614174000"]),
            ("uuid5", &["123e4567-e89b-52d3-a456-426614174000"], &["123e4567-e89b-42d3-a456-426614174000"]),
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044"]),
            ("isbn10", &["0321751043"], &["978-0321751041"]),
            ("isbn13", &["978-0321751041"], &["0321751043"]),
            ("creditcard", &["4111-1111-1111-1111"], &["4111-1111-1111-1112"]),
            ("ssn", &["111-11-1111"], &["1"]),
            ("hexcolor", &["#FFFFFF", "abc"], &["#FFFF"]),
            ("rgbcolor", &["rgb(255,0,10)"], &["rgb(256,0,0)"]),
            ("password", &["anything"], &[]),
        ];
        for (format, accepted, refused) in table {
            assert!(is_known(format), "{format}");
            for text in accepted {
                assert!(holds(format, text), "{format} accepts {text:?}");
            }
            for text in refused {
                assert!(!holds(format, text), "{format} refuses {text:?}");
            }
        }
        assert!(!is_known("int32") && !is_known("quantity") && holds("int32", "anything"));
    }
}
