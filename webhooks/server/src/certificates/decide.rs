//! What to do with the stored certificates now.
//!
//! A server certificate that nears its end is signed anew by the authority that clients already trust. A new
//! authority is needed only when that is impossible, and then nobody may notice: it is announced (clients trust old
//! and new), then it signs, then the old one is forgotten. Between the steps every API server learns the new trust
//! and every replica serves the new certificate.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    CertificateSet,
    check::{certificates, usable_at, verifies},
    issue::{Authority, IssueError, new_authority, pem_of},
};

/// How long before its end a certificate is replaced.
const RENEW_BEFORE: Duration = Duration::from_hours(182 * 24);
/// How long an announced authority waits after both webhook configurations show it.
pub const PROPAGATION: Duration = Duration::from_mins(1);
/// How long an old authority stays trusted after the new one began to sign. Every replica that lives reads the stored
/// set once a minute; one that cannot is not ready long before.
pub const OVERLAP: Duration = Duration::from_mins(10);

/// What to do.
#[derive(Debug)]
pub struct Decision {
    /// The set that shall be in force.
    pub set: CertificateSet,
    /// Whether it differs from what is stored and must be written.
    pub write: bool,
    /// Why it must be written, for the log.
    pub why: String,
    /// When to look again, if before the usual time.
    pub again_after: Option<Duration>,
}

/// Decides what shall be stored. `published`: both webhook configurations show the stored authorities.
pub fn decide(
    stored: Option<&CertificateSet>,
    host: &str,
    published: bool,
    now: Timestamp,
) -> Result<Decision, IssueError> {
    let Some(set) = stored else {
        return Ok(write(take_over(&CertificateSet::default(), new_pair(now)?, host, now)?, "there were none"));
    };
    let unusable = usable_at(set, host, now).err();
    let usable_now = unusable.is_none();
    if let Some((key, cert)) = &set.next {
        let waited = elapsed(set.changed_at, now);
        if usable_now && !(published && waited >= PROPAGATION) {
            return Ok(keep(set, Some(PROPAGATION.saturating_sub(waited).max(Duration::from_secs(1)))));
        }
        let next = take_over(set, (key.clone(), cert.clone()), host, now)?;
        return Ok(write(next, "the announced authority signs now"));
    }
    if usable_at(set, host, later(now, RENEW_BEFORE)).is_ok() {
        return Ok(forget_old_authorities(set, host, now));
    }
    if let Some(authority) = Authority::read(&set.ca_key, &set.ca_certs, now) {
        let server = authority.server(host, now)?;
        let set = CertificateSet { key: server.key, cert: server.cert, ..set.clone() };
        let why = unusable.map_or("the certificate nears its end".to_owned(), |unusable| unusable.to_string());
        return Ok(write(set, why));
    }
    let (key, cert) = new_pair(now)?;
    if let Some(unusable) = unusable {
        let why = format!("the stored certificates cannot be used: {unusable}");
        return Ok(write(take_over(set, (key, cert), host, now)?, why));
    }
    let announced = CertificateSet {
        ca_certs: joined(&set.ca_certs, &cert),
        next: Some((key, cert)),
        changed_at: Some(now),
        ..set.clone()
    };
    Ok(Decision { again_after: Some(PROPAGATION), ..write(announced, "a new authority is announced") })
}

fn keep(set: &CertificateSet, again_after: Option<Duration>) -> Decision {
    Decision { set: set.clone(), write: false, why: String::new(), again_after }
}

fn write(set: CertificateSet, why: impl Into<String>) -> Decision {
    let again_after = set.changed_at.map(|_| OVERLAP);
    Decision { set, write: true, why: why.into(), again_after }
}

fn new_pair(now: Timestamp) -> Result<(String, String), IssueError> {
    new_authority(now).map(|pair| (pair.key, pair.cert))
}

/// The authority signs from now on; those before it stay trusted for a while.
fn take_over(
    old: &CertificateSet,
    (ca_key, ca_cert): (String, String),
    host: &str,
    now: Timestamp,
) -> Result<CertificateSet, IssueError> {
    let Some(authority) = Authority::read(&ca_key, &ca_cert, now) else {
        // An announced authority that cannot be read any more is replaced by a fresh one.
        return take_over(old, new_pair(now)?, host, now);
    };
    let server = authority.server(host, now)?;
    let others = without(&old.ca_certs, &authority.cert);
    let changed_at = (!others.is_empty()).then_some(now);
    let ca_certs = joined(&authority.cert, &others);
    Ok(CertificateSet { ca_key, ca_certs, key: server.key, cert: server.cert, next: None, changed_at })
}

/// Several authorities without a time of change were stored by somebody else, who may have a reason.
fn forget_old_authorities(set: &CertificateSet, host: &str, now: Timestamp) -> Decision {
    let Some(changed_at) = set.changed_at else { return keep(set, None) };
    let left = OVERLAP.saturating_sub(elapsed(Some(changed_at), now));
    if !left.is_zero() {
        return keep(set, Some(left));
    }
    let server = certificates(&set.cert);
    let signs = |authority: &String| server.first().is_some_and(|cert| verifies(cert, authority, host, now));
    match authorities(&set.ca_certs).into_iter().find(signs) {
        Some(ca_certs) => Decision {
            again_after: None,
            ..write(CertificateSet { ca_certs, changed_at: None, ..set.clone() }, "the old authority is forgotten")
        },
        None => keep(set, None),
    }
}

fn authorities(certs: &str) -> Vec<String> {
    certificates(certs).iter().map(|der| pem_of("CERTIFICATE", der)).collect()
}

fn without(certs: &str, one: &str) -> String {
    authorities(certs).into_iter().filter(|cert| cert != one).collect()
}

fn joined(first: &str, second: &str) -> String {
    let mut all = first.to_owned();
    if !all.is_empty() && !all.ends_with('\n') {
        all.push('\n');
    }
    all + second
}

fn elapsed(since: Option<Timestamp>, now: Timestamp) -> Duration {
    since.map_or(Duration::MAX, |since| {
        Duration::from_secs(u64::try_from(now.as_second().saturating_sub(since.as_second())).unwrap_or_default())
    })
}

fn later(now: Timestamp, span: Duration) -> Timestamp {
    now.checked_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "koordinator-webhook-service.koordinator-system.svc";
    /// An authority and a server certificate with RSA keys in PKCS#1, as the generator of Koordinator's Go programs writes them.
    const BY_THE_ORIGINAL: &str = include_str!("../../tests/data/secret_of_the_original.json");

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn of_the_original() -> CertificateSet {
        let entries: std::collections::BTreeMap<String, String> = serde_json::from_str(BY_THE_ORIGINAL).unwrap();
        CertificateSet::of_entries(&entries.into_iter().map(|(name, text)| (name, text.into_bytes())).collect())
    }

    fn fresh(now: Timestamp) -> CertificateSet {
        decide(None, HOST, false, now).unwrap().set
    }

    #[test]
    fn nothing_stored_gives_a_set_that_lasts_nearly_ten_years() {
        let now = time("2026-01-01T00:00:00Z");
        let decision = decide(None, HOST, false, now).unwrap();
        assert!(decision.write && decision.set.changed_at.is_none());
        assert_eq!(usable_at(&decision.set, HOST, time("2035-12-01T00:00:00Z")), Ok(()));
        assert!(usable_at(&decision.set, HOST, time("2036-01-01T00:00:00Z")).is_err());
        assert!(usable_at(&decision.set, "localhost", now).is_ok());
        assert!(usable_at(&decision.set, "other.svc", now).is_err());
        assert!(!decide(Some(&decision.set), HOST, true, now).unwrap().write);
    }

    #[test]
    fn an_address_is_a_host_too_and_nonsense_is_an_error_that_says_what_to_set() {
        let now = time("2026-01-01T00:00:00Z");
        let set = decide(None, "127.0.0.1", false, now).unwrap().set;
        assert_eq!(usable_at(&set, "127.0.0.1", now), Ok(()));
        let error = decide(None, "kein gültiger Name", false, now).unwrap_err();
        assert!(error.to_string().contains("set WEBHOOK_HOST"), "{error}");
    }

    #[test]
    fn a_secret_of_the_original_is_served_as_it_is() {
        let decision = decide(Some(&of_the_original()), HOST, true, time("2026-06-01T00:00:00Z")).unwrap();
        assert!(!decision.write, "{}", decision.why);
        assert_eq!(decision.set, of_the_original());
    }

    #[test]
    fn the_original_s_rsa_authority_signs_the_next_certificate() {
        // Half a year before its end the server certificate is signed anew; the trust of clients stays as it was.
        let now = time("2031-01-01T00:00:00Z");
        let old = of_the_original();
        let decision = decide(Some(&old), HOST, true, now).unwrap();
        assert!(decision.write);
        assert_eq!((&decision.set.ca_certs, &decision.set.ca_key), (&old.ca_certs, &old.ca_key));
        assert_ne!(decision.set.cert, old.cert);
        assert_eq!(usable_at(&decision.set, HOST, later(now, RENEW_BEFORE)), Ok(()));
    }

    #[test]
    fn another_host_needs_no_new_trust() {
        let now = time("2026-01-01T00:00:00Z");
        let old = fresh(now);
        let decision = decide(Some(&old), "127.0.0.1", true, now).unwrap();
        assert!(decision.write);
        assert_eq!(decision.set.ca_certs, old.ca_certs);
    }

    #[test]
    fn a_new_authority_comes_in_three_steps_and_nobody_is_refused_between() {
        let start = time("2026-01-01T00:00:00Z");
        let old = fresh(start);
        // The authority has less than a year left, the certificate less than half a year: still served today.
        let now = time("2035-08-01T00:00:00Z");
        let announced = decide(Some(&old), HOST, true, now).unwrap();
        assert!(announced.write && announced.set.next.is_some());
        assert_eq!((&announced.set.cert, certificates(&announced.set.ca_certs).len()), (&old.cert, 2));

        let wait = |published, seconds| {
            decide(Some(&announced.set), HOST, published, later(now, Duration::from_secs(seconds))).unwrap()
        };
        assert!(!wait(false, 7200).write, "until the configurations show it, it does not sign");
        assert!(!wait(true, 59).write, "API servers need time to learn");
        let signed = wait(true, 60);
        assert!(signed.write && signed.set.next.is_none());
        // Old and new replicas are accepted by clients with the announced and with the new trust.
        for (server, trust) in [(&old, &announced), (&signed.set, &announced), (&old, &signed), (&signed.set, &signed)]
        {
            let server = &certificates(&server.cert)[0];
            assert!(verifies(server, &trust.set.ca_certs, HOST, later(now, PROPAGATION)));
        }

        let end = |seconds| decide(Some(&signed.set), HOST, true, later(now, Duration::from_secs(seconds))).unwrap();
        assert!(!end(60 + 599).write);
        let settled = end(60 + 600);
        assert!(settled.write && settled.set.changed_at.is_none());
        assert_eq!(certificates(&settled.set.ca_certs).len(), 1);
        assert_eq!(usable_at(&settled.set, HOST, later(now, RENEW_BEFORE)), Ok(()));
    }

    #[test]
    fn what_cannot_be_served_today_is_replaced_at_once() {
        let now = time("2026-01-01T00:00:00Z");
        let broken = CertificateSet { cert: "garbage".into(), ca_key: "garbage".into(), ..fresh(now) };
        let decision = decide(Some(&broken), HOST, false, now).unwrap();
        assert!(decision.write && decision.set.next.is_none());
        assert_eq!(decision.why, "the stored certificates cannot be used: no server certificate in PEM form (tls.crt)");
        assert_eq!(usable_at(&decision.set, HOST, now), Ok(()));
        assert_eq!(certificates(&decision.set.ca_certs).len(), 2, "replicas with the old certificate stay trusted");
    }

    #[test]
    fn an_empty_secret_as_a_chart_creates_it_is_filled() {
        let decision = decide(Some(&CertificateSet::default()), HOST, false, time("2026-01-01T00:00:00Z")).unwrap();
        assert!(decision.write && decision.set.changed_at.is_none());
    }
}
