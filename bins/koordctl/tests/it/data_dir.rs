//! `koordctl up --data-dir`: what was answered is kept, whatever happens to the process and to the disk.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::program::{Api, Up, fails, folder, koordctl, koordctl_with_little_room};

const QUOTAS: &str = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct Place {
    kubeconfig: PathBuf,
    data_dir: String,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = folder(name);
        Self { kubeconfig: folder.join("koord.kubeconfig"), data_dir: format!("--data-dir={}/data", folder.display()) }
    }

    /// The kubeconfig of a process that was killed is in the way of the next.
    fn up(&self) -> Up {
        Up::start(&self.kubeconfig, &[&self.data_dir, "--force"])
    }
}

fn quota(name: &str, min_cpu: &str) -> Value {
    json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": {"name": name},
        "spec": {"min": {"cpu": min_cpu}, "max": {"cpu": "40"}},
    })
}

fn config_map(name: &str, text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}})
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[test]
fn objects_survive_kill_9_and_the_webhooks_work_on() {
    let place = Place::new("kill-9");
    let mut up = place.up();
    let api = Api::of(&place.kubeconfig);
    let made = api.create(QUOTAS, &quota("before", "10")).unwrap();
    let kept = [
        format!("{QUOTAS}/before"),
        "/api/v1/nodes/hollow-1".to_owned(),
        "/apis/slo.koordinator.sh/v1alpha1/nodeslos/hollow-1".to_owned(),
        "/api/v1/namespaces/koordinator-system/configmaps/slo-controller-config".to_owned(),
    ];
    let uids = kept.each_ref().map(|path| uid(&api.get(path)));
    up.kill();
    assert!(place.kubeconfig.exists());

    let _up = place.up();
    let api = Api::of(&place.kubeconfig);
    assert_eq!(kept.each_ref().map(|path| uid(&api.get(path))), uids);
    let found = api.get(&format!("{QUOTAS}/before"));
    assert_eq!((&found["spec"], &found["metadata"]["labels"]), (&made["spec"], &made["metadata"]["labels"]));
    let after = api.create(QUOTAS, &quota("after", "10")).unwrap();
    assert_eq!(after["metadata"]["labels"]["quota.scheduling.koordinator.sh/parent"], "koordinator-root-quota");
    assert!(!uids.contains(&uid(&after)));
    let revision = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(revision(&after) > revision(&found));
    let refused = api.create(QUOTAS, &quota("too-much", "50")).unwrap_err().to_string();
    assert!(refused.contains("min 50 > max 40"), "{refused}");
}

#[test]
fn every_create_that_was_answered_survives_a_kill_in_the_middle_of_writing() {
    let place = Place::new("midway");
    let mut up = place.up();
    let stop = AtomicBool::new(false);
    let answered = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (stop, kubeconfig) = (&stop, &place.kubeconfig);
                scope.spawn(move || {
                    let api = Api::of(kubeconfig);
                    let mut answered = Vec::new();
                    for index in 0.. {
                        let name = format!("from-{writer}-{index}");
                        match api.create(CONFIG_MAPS, &config_map(&name, "kept")) {
                            Ok(object) => answered.push((name, uid(&object))),
                            Err(_) => break,
                        }
                        assert!(!stop.load(Ordering::Relaxed), "it answers after it was killed");
                    }
                    answered
                })
            })
            .collect();
        // Long enough that writers are in the middle of it, whenever that is.
        std::thread::sleep(Duration::from_millis(300));
        up.kill();
        let answered: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        stop.store(true, Ordering::Relaxed);
        answered
    });
    assert!(!answered.is_empty());
    let _up = place.up();
    let api = Api::of(&place.kubeconfig);
    for (name, uid_then) in &answered {
        assert_eq!(&uid(&api.get(&format!("{CONFIG_MAPS}/{name}"))), uid_then, "{name}");
    }
}

#[test]
fn a_full_disk_is_said_and_loses_nothing_that_was_stored() {
    const ROOM_KB: u32 = 6 * 1024;
    let place = Place::new("full");
    let mut up = Up::spawn(koordctl_with_little_room(ROOM_KB), &place.kubeconfig, &[&place.data_dir]);
    let api = Api::of(&place.kubeconfig);
    let text = "x".repeat(100_000);
    let mut stored = Vec::new();
    let refused = loop {
        let name = format!("big-{}", stored.len());
        match api.create(CONFIG_MAPS, &config_map(&name, &text)) {
            Ok(object) => stored.push((name, uid(&object))),
            Err(error) => break error.to_string(),
        }
        assert!(stored.len() < 1000, "the disk is never full");
    };
    assert!(refused.contains("free space there and try again, nothing that was stored is lost"), "{refused}");
    let still_there = |api: &Api| {
        for (name, uid_then) in &stored {
            let found = api.get(&format!("{CONFIG_MAPS}/{name}"));
            assert_eq!((&uid(&found), found["data"]["text"].as_str()), (uid_then, Some(text.as_str())), "{name}");
        }
    };
    assert!(!stored.is_empty());
    still_there(&api);
    up.kill();

    let _up = place.up();
    let api = Api::of(&place.kubeconfig);
    still_there(&api);
    api.create(CONFIG_MAPS, &config_map("there-is-room", &text)).unwrap();
}

#[test]
fn a_disk_that_is_full_from_the_start_is_named() {
    let place = Place::new("full-at-once");
    let mut command = koordctl_with_little_room(1);
    command.args(["up", "--port=0", "--nodes=0", "--no-manager", &place.data_dir, "--kubeconfig"]);
    let text = fails(&command.arg(&place.kubeconfig).output().unwrap());
    assert!(text.contains("objects.redb") && text.contains("File too large") && text.contains("--data-dir"), "{text}");
    assert!(!place.kubeconfig.exists());
}

#[test]
fn two_clusters_never_share_a_folder() {
    let place = Place::new("shared");
    let _up = place.up();
    let mut second = koordctl();
    second.args(["up", "--port=0", "--nodes=0", "--no-manager", &place.data_dir, "--kubeconfig"]);
    let text = fails(&second.arg(place.kubeconfig.with_file_name("second")).output().unwrap());
    assert!(text.contains("is in use by another server") && text.contains("--data-dir"), "{text}");
}

#[test]
fn the_time_of_a_fast_cluster_goes_on_after_kill_9_and_after_a_polite_end() {
    let place = Place::new("fast-again");
    let start = || Up::start(&place.kubeconfig, &[&place.data_dir, "--force", "--speed=2000"]);
    let latest = |api: &Api| -> Timestamp {
        let metric = api.get("/apis/slo.koordinator.sh/v1alpha1/nodemetrics/hollow-0");
        metric["status"]["updateTime"].as_str().map_or(Timestamp::MIN, |text| text.parse().unwrap())
    };
    let made = |api: &Api, name: &str| -> Timestamp {
        let made = api.create(CONFIG_MAPS, &config_map(name, "")).unwrap();
        made["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap()
    };
    let mut shown = Timestamp::MIN;
    for (run, polite) in [(0, false), (1, true), (2, false)] {
        let mut up = start();
        let api = Api::of(&place.kubeconfig);
        let made = made(&api, &format!("run-{run}"));
        assert!(made >= shown, "run {run} began at {made}, and {shown} had been shown");
        // Hours of the cluster: more than a seed drawn anew would lie apart.
        std::thread::sleep(Duration::from_secs(3));
        shown = latest(&api);
        assert!(shown.duration_since(made).as_secs() > 3600, "{made} to {shown}");
        if polite {
            assert!(up.end());
        } else {
            up.kill();
        }
    }
}
