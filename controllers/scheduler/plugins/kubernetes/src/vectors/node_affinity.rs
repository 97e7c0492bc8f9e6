use std::sync::Arc;

use koord_scheduler_framework::{EnqueueExtensions as _, cluster::Cluster, event::Event, node::Node};
use koord_scheduler_testing::{filtered, labels, node, pod, scored};
use serde_json::{Value, json};

use crate::NodeAffinity;

const MISMATCH: &str = "UU node(s) didn't match Pod's node affinity/selector";
const CONFLICT: &str = "UU pod affinity terms conflict";
const ENFORCED: &str = "UU node(s) didn't match scheduler-enforced node affinity";
const LEFT_OUT: &str = "left out";

fn labelled(name: &str, text: &str) -> Arc<Node> {
    node(name, &json!({"metadata": {"labels": labels(text)}}))
}

/// A requirement such as `disk In ssd,hdd`, `disk Exists` or `name In n1`, which is about the name of the node.
fn requirement(text: &str) -> (&'static str, Value) {
    let mut words = text.splitn(3, ' ');
    let (key, operator, values) = (words.next().unwrap(), words.next().unwrap(), words.next());
    let values = values.map(|values| values.split(',').collect::<Vec<_>>());
    let part = if key == "name" { "matchFields" } else { "matchExpressions" };
    let key = if key == "name" { "metadata.name" } else { key };
    (part, json!({"key": key, "operator": operator, "values": values}))
}

/// A term of requirements that stand between ` & `.
fn term(text: &str) -> Value {
    let mut term = json!({"matchExpressions": [], "matchFields": []});
    for text in text.split(" & ").filter(|text| !text.is_empty()) {
        let (part, requirement) = requirement(text);
        term[part].as_array_mut().unwrap().push(requirement);
    }
    term
}

fn required(terms: &[&str]) -> Value {
    json!({"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": terms.iter().map(|text| term(text)).collect::<Vec<_>>(),
    }})
}

fn preferred(terms: &[(i32, &str)]) -> Value {
    let weighted = |(weight, text): &(i32, &str)| json!({"weight": weight, "preference": term(text)});
    json!({"preferredDuringSchedulingIgnoredDuringExecution": terms.iter().map(weighted).collect::<Vec<_>>()})
}

/// The plugin with an affinity for all pods.
fn with_added(affinity: &Value) -> NodeAffinity {
    NodeAffinity::new(serde_json::from_value(json!({"addedAffinity": affinity})).unwrap()).unwrap()
}

#[test]
fn a_node_selector_is_a_part_of_the_labels_of_the_node() {
    for (what, selector, of_node, takes) in [
        ("no such label", "disk=ssd", "", false),
        ("the same", "disk=ssd", "disk=ssd", true),
        ("another value", "disk=ssd", "disk=hdd", false),
        ("the node has more", "disk=ssd", "disk=ssd,arch=arm", true),
        ("the node has less", "disk=ssd,arch=arm", "disk=ssd", false),
        ("nothing is selected", "", "disk=ssd", true),
    ] {
        let said =
            filtered(&NodeAffinity::default(), &[labelled("n1", of_node)], &json!({"nodeSelector": labels(selector)}));
        assert_eq!(said, [if takes { "" } else { MISMATCH }], "{what}");
    }
}

#[test]
fn a_term_holds_for_labels_and_for_names() {
    // The nodes n1 with these labels and n2 without any.
    const N1: &str = "disk=ssd,kernel=0512,gpu=a100";
    for (what, terms, n1, n2) in [
        ("one of the values", &["disk In hdd,ssd"][..], "", MISMATCH),
        ("none of the values", &["disk In hdd,nvme"], MISMATCH, MISMATCH),
        ("above", &["kernel Gt 0510"], "", MISMATCH),
        ("not above", &["kernel Gt 0512"], MISMATCH, MISMATCH),
        ("below", &["kernel Lt 600"], "", MISMATCH),
        ("not one of the values", &["disk NotIn hdd"], "", ""),
        ("it is there", &["gpu Exists"], "", MISMATCH),
        ("it is not there", &["gpu DoesNotExist"], MISMATCH, ""),
        ("a term that says nothing", &[""], MISMATCH, MISMATCH),
        ("no term", &[], MISMATCH, MISMATCH),
        ("both hold", &["gpu Exists & gpu NotIn h100,h200"], "", MISMATCH),
        ("one of both holds", &["gpu Exists & gpu In h100,h200"], MISMATCH, MISMATCH),
        ("one of the terms holds", &["disk In ssd", "tier In gold"], "", MISMATCH),
        ("a value that no label has", &["disk NotIn not a label: @"], MISMATCH, MISMATCH),
        ("such a value beside a term that holds", &["disk NotIn not a label: @", "gpu Exists"], "", MISMATCH),
        ("by name", &["name In n1"], "", LEFT_OUT),
        ("by another name", &["name In n9"], LEFT_OUT, LEFT_OUT),
        ("not by name", &["name NotIn n1"], MISMATCH, ""),
        ("a name that cannot be, or labels", &["name In n8 & name In n9", "disk In ssd"], "", MISMATCH),
        ("another name and labels", &["name In n2 & disk In ssd"], LEFT_OUT, MISMATCH),
        ("the name and labels", &["name In n1 & disk In ssd"], "", LEFT_OUT),
        ("neither of two terms", &["name In n2 & disk In ssd", "disk In hdd"], MISMATCH, MISMATCH),
        ("two names", &["name In n1", "name In n2"], "", ""),
        ("names that contradict each other", &["name In n1 & name In n2"], CONFLICT, CONFLICT),
        ("a name beside a term that says nothing", &["name In n1", ""], "", MISMATCH),
    ] {
        let spec = json!({"affinity": {"nodeAffinity": required(terms)}});
        let nodes = [labelled("n1", N1), labelled("n2", "")];
        assert_eq!(filtered(&NodeAffinity::default(), &nodes, &spec), [n1, n2], "{what}");
    }
}

#[test]
fn selector_affinity_and_what_is_added_must_all_hold() {
    let nodes = [labelled("n1", "disk=ssd"), labelled("n2", "disk=hdd,zone=a")];
    for (what, added, selector, own, expected) in [
        ("nothing is said", None, "", None, ["", ""]),
        ("an affinity without required terms", None, "", Some(json!({})), ["", ""]),
        ("selector and affinity", None, "disk=ssd", Some(required(&["disk Exists"])), ["", MISMATCH]),
        ("selector against affinity", None, "disk=ssd", Some(required(&["disk In hdd"])), [MISMATCH, MISMATCH]),
        ("added alone", Some("zone Exists"), "", None, [ENFORCED, ""]),
        ("added and own", Some("zone Exists"), "", Some(required(&["disk In hdd"])), [ENFORCED, ""]),
        (
            "added, and own that does not hold",
            Some("zone Exists"),
            "",
            Some(required(&["disk In ssd"])),
            [ENFORCED, MISMATCH],
        ),
        ("added by name", Some("name In n2"), "", Some(required(&["disk Exists"])), [ENFORCED, ""]),
    ] {
        let plugin = added.map(|text| with_added(&required(&[text])));
        let spec = json!({"nodeSelector": labels(selector), "affinity": {"nodeAffinity": own}});
        assert_eq!(filtered(&plugin.unwrap_or_default(), &nodes, &spec), expected, "{what}");
    }
}

#[test]
fn weights_of_preferred_terms_add_up() {
    let nodes = [labelled("n1", "disk=ssd,zone=a"), labelled("n2", "disk=ssd"), labelled("n3", "rack=7,zone=b")];
    for (what, added, own, expected) in [
        ("nothing is preferred", None, None, None),
        ("no node is preferred", None, Some(preferred(&[(9, "disk In tape")])), Some(vec![0, 0, 0])),
        ("one node is preferred", None, Some(preferred(&[(2, "zone In a")])), Some(vec![100, 0, 0])),
        (
            "all in different measure",
            None,
            Some(preferred(&[(4, "disk Exists"), (1, "zone Exists")])),
            Some(vec![100, 80, 20]),
        ),
        ("by name", None, Some(preferred(&[(3, "name In n3"), (6, "name NotIn n3")])), Some(vec![100, 100, 50])),
        ("added alone", Some((2, "rack Exists")), None, Some(vec![0, 0, 100])),
        ("added and own", Some((8, "rack Exists")), Some(preferred(&[(2, "zone Exists")])), Some(vec![20, 0, 100])),
        ("a term that says nothing", None, Some(preferred(&[(5, ""), (5, "zone In a")])), Some(vec![100, 0, 0])),
        (
            "a value that no label has",
            None,
            Some(preferred(&[(5, "disk NotIn no label: @"), (5, "zone In a")])),
            Some(vec![100, 0, 0]),
        ),
        ("a weight of nothing", None, Some(preferred(&[(0, "rack Exists"), (5, "zone In a")])), Some(vec![100, 0, 0])),
    ] {
        let plugin = added.map(|term| with_added(&preferred(&[term])));
        let spec = json!({"affinity": {"nodeAffinity": own}});
        assert_eq!(scored(&plugin.unwrap_or_default(), &nodes, &spec), expected, "{what}");
    }
}

#[test]
fn a_node_that_is_selected_from_now_on_helps() {
    let added = with_added(&required(&["zone Exists"]));
    let waiting = pod("waiting", &json!({"affinity": {"nodeAffinity": required(&["disk In ssd"])}}));
    let changed = |old: &str, new: &str| Event::NodeChanged { old: labelled("n", old), new: labelled("n", new) };
    for (what, event, helps, helps_with_added) in [
        ("a node that is not selected", Event::NodeAdded(labelled("n", "disk=hdd")), false, false),
        ("a node that is selected", Event::NodeAdded(labelled("n", "disk=ssd")), true, false),
        ("a node that is selected by both", Event::NodeAdded(labelled("n", "disk=ssd,zone=a")), true, true),
        ("it is not selected now", changed("disk=ssd", "disk=hdd"), false, false),
        ("it was selected before", changed("disk=ssd", "disk=ssd,x=y"), false, false),
        ("it is selected now", changed("disk=hdd", "disk=ssd"), true, false),
        ("it is selected by both now", changed("disk=ssd", "disk=ssd,zone=a"), false, true),
    ] {
        let found =
            [&NodeAffinity::default(), &added].map(|one| one.is_helped_by(&waiting, &event, &Cluster::default()));
        assert_eq!(found, [helps, helps_with_added], "{what}");
    }
}
