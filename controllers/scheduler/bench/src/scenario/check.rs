//! What is wrong with a scenario that its schema cannot say.

use koord_configuration::{Problem, Problems};
use koord_program::names::question;
use koord_resource::schema::names::dns1123_label;

use super::{CreatePods, Op, Scenario, Step};

/// Templates that every scenario has.
const BUILT_IN: [&str; 2] = ["node", "pod"];

const QOS_CLASSES: [&str; 5] = ["LSE", "LSR", "LS", "BE", "SYSTEM"];

impl Scenario {
    /// What is wrong with it.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        if self.name.is_empty() {
            problems.add(&["name"], "must be set");
        } else if !dns1123_label(&self.name).is_empty() {
            let rule = "must be of lower-case letters, digits and '-', because files are named after it";
            problems.add(&["name"], rule);
        }
        if let Some(class) = self.qos_class.as_deref().filter(|class| !QOS_CLASSES.contains(class)) {
            let message = format!("{class:?} is none of {}", QOS_CLASSES.join(", "));
            problems.add(&["qosClass"], message);
        }
        if !dns1123_label(&self.namespace).is_empty() {
            problems.add(&["namespace"], "must be the name of a namespace");
        }
        for (name, template) in &self.templates {
            if let Some(base) = template["extends"].as_str() {
                self.known(base, &["templates", name, "extends"], &mut problems);
            }
        }
        let counts = [("nodeCount", self.node_count), ("podCount", self.pod_count), ("gangSize", self.gang_size)];
        if self.ops.is_empty() {
            for (field, count) in counts.iter().take(2) {
                if count.is_none() {
                    problems.add(&[field], "must be set, or ops");
                }
            }
            gang(self.gang_size, self.min_member, &[], &mut problems);
        } else {
            for (field, _) in counts.iter().filter(|(_, count)| count.is_some()) {
                problems.add(&[field], "has no effect beside ops");
            }
            self.check_ops(&mut problems);
        }
        problems.into_vec()
    }

    fn check_ops(&self, problems: &mut Problems) {
        let mut is_measured = false;
        for (index, op) in self.ops.iter().enumerate() {
            let index = index.to_string();
            let steps = op.set();
            let [step] = &steps[..] else {
                problems.add(&["ops", &index], format!("must be one operation, not {}", steps.len()));
                continue;
            };
            is_measured |= match step {
                Step::CreatePods(pods) => pods.collect_metrics,
                Step::CreatePodSets(sets) => sets.create_pods.collect_metrics,
                Step::StartCollectingMetrics(_) => true,
                _ => false,
            };
            self.check_step(op, step, &["ops", &index], problems);
        }
        if !is_measured {
            let remedy = "nothing is measured; set collectMetrics in a createPods, or add startCollectingMetrics";
            problems.add(&["ops"], remedy);
        }
    }

    fn check_step(&self, op: &Op, step: &Step, at: &[&str], problems: &mut Problems) {
        let mut template = |keys: &[&str], name: &str| self.known(name, &[at, keys].concat(), problems);
        match step {
            Step::CreateNodes(nodes) => {
                template(&["createNodes", "template"], &nodes.template);
            }
            Step::CreatePods(pods) => self.check_pods(pods, &[at, &["createPods"]].concat(), problems),
            Step::CreatePodSets(sets) => {
                self.check_pods(&sets.create_pods, &[at, &["createPodSets", "createPods"]].concat(), problems);
            }
            Step::CreateAny(any) => template(&["createAny", "template"], &any.template),
            Step::UpdateAny(any) => template(&["updateAny", "template"], &any.template),
            Step::Churn(churn) => {
                churn.templates.iter().for_each(|name| template(&["churn", "templates"], name));
                if churn.templates.is_empty() {
                    problems.add(&[at, &["churn", "templates"]].concat(), "must name a template");
                }
            }
            _ => {}
        }
        let counts = [
            ("createNodes", op.create_nodes.as_ref().map(|nodes| nodes.count)),
            ("createNamespaces", op.create_namespaces.as_ref().map(|namespaces| namespaces.count)),
            ("createPods", op.create_pods.as_ref().map(|pods| pods.count)),
            ("createPodSets", op.create_pod_sets.as_ref().map(|sets| sets.count.min(sets.create_pods.count))),
        ];
        for (name, _) in counts.into_iter().filter(|(_, count)| *count == Some(0)) {
            problems.add(&[at, &[name, "count"]].concat(), "must be set");
        }
    }

    fn check_pods(&self, pods: &CreatePods, at: &[&str], problems: &mut Problems) {
        let names =
            [("template", Some(&pods.template)), ("volume", pods.volume.as_ref()), ("claim", pods.claim.as_ref())];
        for (key, name) in names {
            if let Some(name) = name {
                self.known(name, &[at, &[key]].concat(), problems);
            }
        }
        if pods.volume.is_some() != pods.claim.is_some() {
            problems.add(&[at, &["volume"]].concat(), "volume and claim belong together");
        }
        if pods.collect_metrics && pods.skip_wait_to_completion {
            let rule = "cannot be measured when it is not waited for; use startCollectingMetrics";
            problems.add(&[at, &["collectMetrics"]].concat(), rule);
        }
        gang(pods.gang_size, pods.min_member, at, problems);
    }

    fn known(&self, name: &str, at: &[&str], problems: &mut Problems) {
        let known = || BUILT_IN.iter().copied().chain(self.templates.keys().map(String::as_str));
        if !known().any(|known| known == name) {
            problems.suggest(at, format!("there is no template {name:?}"), question(name, known()));
        }
    }
}

fn gang(size: Option<u32>, min: Option<u32>, at: &[&str], problems: &mut Problems) {
    let at = [at, &["minMember"]].concat();
    match (size, min) {
        (None, Some(_)) => problems.add(&at, "has no effect without gangSize"),
        (Some(size), Some(min)) if min > size => problems.add(&at, "must not be more than gangSize"),
        _ => {}
    }
}
