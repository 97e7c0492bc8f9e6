//! Internet addresses as the API server reads them: parts of an IPv4 address may have leading zeros.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address; the zeros that other parsers refuse are dropped.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let (head, tail) = text.rsplit_once(':')?;
        if tail.contains('.') {
            let tail = ipv4(tail)?;
            return format!("{head}:{tail}").parse::<Ipv6Addr>().ok().map(IpAddr::V6);
        }
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    ipv4(text).map(IpAddr::V4)
}

fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut parts = [0; 4];
    let mut given = text.split('.');
    for part in &mut parts {
        let digits = given.next().filter(|digits| digits.bytes().all(|c| c.is_ascii_digit()))?;
        *part = digits.parse().ok()?;
    }
    given.next().is_none().then(|| Ipv4Addr::from(parts))
}

/// Whether a network is written as an address with the length of its prefix.
pub fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = match parse_ip(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    length.bytes().all(|c| c.is_ascii_digit()) && length.parse::<u8>().is_ok_and(|length| length <= most)
}

/// Whether an address belongs to IPv6; those that embed an IPv4 address do not.
pub fn is_ipv6(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_zeros_are_no_octal() {
        assert_eq!(parse_ip("010.0.0.1"), "10.0.0.1".parse().ok());
        assert_eq!(parse_ip("::ffff:1.2.3.04"), "::ffff:1.2.3.4".parse().ok());
        for wrong in ["", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.+4", "a::b::c"] {
            assert_eq!(parse_ip(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn networks() {
        assert!(is_network("10.0.0.0/8") && is_network("::/128"));
        assert!(!is_network("10.0.0.0") && !is_network("10.0.0.0/33") && !is_network("10.0.0.0/+8"));
    }
}
