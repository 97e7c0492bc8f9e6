//! The definitions of the 13 kinds, as an API server would read them.

use koord_resource::document::check;
use koord_types::KINDS;

#[test]
fn an_api_server_takes_every_definition() {
    assert_eq!(KINDS.len(), 13);
    for versions in KINDS {
        let findings = check(versions);
        assert!(findings.is_empty(), "{}:\n{findings}", versions[0].info.kind);
    }
}
