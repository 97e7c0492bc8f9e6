//! Whatever users do at once, the tree that is stored keeps its promises.

use koord_resource::ResourceList;

use super::*;

/// Whatever is asked at once, and however late the watch is: no quota gets more than there is above it, and none is
/// left without the quota above it.
#[tokio::test(start_paused = true)]
async fn the_tree_stays_sound() {
    let mut refused = 0;
    for seed in 0..15 {
        let (cluster, random) = (Cluster::new(), Arc::new(Random::seeded(seed)));
        let users = (0..8).map(|_| {
            let (cluster, random) = (cluster.clone(), Arc::clone(&random));
            async move {
                let mut refused = 0;
                for _ in 0..25 {
                    tokio::time::sleep(Duration::from_millis(random.below(200))).await;
                    refused += u32::from(step(&cluster, &random).await.is_err());
                }
                refused
            }
        });
        refused += futures::future::join_all(users).await.into_iter().sum::<u32>();
        let problems = problems(&cluster.stored.lock());
        assert!(problems.is_empty(), "seed {seed}: {problems:?}");
    }
    assert!(refused > 300, "only {refused} requests were refused");
}

async fn step(cluster: &Cluster, random: &Random) -> Result<(), String> {
    let delay = Duration::from_millis(random.below(600));
    let name = format!("q{}", random.below(12));
    let parent = match random.below(14) {
        number if number < 12 => format!("q{number}"),
        _ => "koordinator-root-quota".to_owned(),
    };
    let wanted = quota(&name, &parent, random.below(3) > 0, random.below(12));
    match (cluster.get(&name), random.below(4)) {
        (None, _) => {
            // Two users may create the same quota; the second finds it stored.
            cluster.ask("CREATE", Some(&wanted), None, false).await?;
            let later_webhook_refuses = random.below(5) == 0;
            if !later_webhook_refuses && cluster.get(&name).is_none() {
                cluster.store(wanted, delay);
            }
            Ok(())
        }
        (Some(old), 0) => {
            cluster.ask("DELETE", None, Some(&old), false).await?;
            if random.below(5) > 0 && cluster.get(&name).as_ref() == Some(&old) {
                cluster.remove(&name, delay);
            }
            Ok(())
        }
        (Some(old), _) => {
            cluster.ask("UPDATE", Some(&wanted), Some(&old), false).await?;
            // The API server refuses a change of an old state.
            if random.below(5) > 0 && cluster.get(&name).as_ref() == Some(&old) {
                cluster.store(wanted, delay);
            }
            Ok(())
        }
    }
}

fn problems(stored: &BTreeMap<String, Value>) -> Vec<String> {
    let min = |quota: &Value| serde_json::from_value::<ResourceList>(quota["spec"]["min"].clone()).unwrap();
    let parent = |quota: &Value| {
        quota["metadata"]["labels"]["quota.scheduling.koordinator.sh/parent"].as_str().unwrap().to_owned()
    };
    let mut promised = BTreeMap::<String, ResourceList>::new();
    let mut problems = Vec::new();
    for (name, quota) in stored {
        promised.entry(parent(quota)).or_default().add(&min(quota));
        let mut above = parent(quota);
        for _ in 0..stored.len() {
            let Some(quota) = stored.get(&above) else { break };
            above = parent(quota);
        }
        if above != "koordinator-root-quota" {
            problems.push(format!("{name} hangs on {above}"));
        }
    }
    for (name, quota) in stored {
        let below = promised.get(name).cloned().unwrap_or_default();
        if !below.exceeding_completely(&min(quota)).is_empty() {
            problems.push(format!("{name} has {}, below it {below:?} is promised", min(quota).amount("cpu")));
        }
    }
    problems
}
