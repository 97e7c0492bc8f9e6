//! ImageLocality: nodes that have the images of a pod are preferred.

use std::sync::Arc;

use koord_scheduler_framework::{
    NodeScore, Plugin, Registration, Request, SCORE_MAX, Scale, SchedulingSignature, Score, SignatureFields, as_it_is,
    cluster::Cluster, columns::Row,
};

/// Scores nodes by the sizes of those images of the pod that they have, each as far as nodes have it: an image that few nodes
/// have does not draw all pods to them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImageLocality;

const MEBIBYTE: i64 = 1 << 20;
/// Less does not count.
const SIZE_MIN: i64 = 23 * MEBIBYTE;
/// More of one container does not count.
const SIZE_MAX: i64 = 1000 * MEBIBYTE;

/// By row.
struct Scores(Vec<i64>);

impl Plugin for ImageLocality {
    fn name(&self) -> &'static str {
        "ImageLocality"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).score(&self).scheduling_signature(&self)
    }
}

impl Score for ImageLocality {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        let images = &request.template().images;
        if images.iter().all(|name| cluster.image(name).is_none()) {
            return None;
        }
        let mut scores = vec![0_i64; cluster.width()];
        for image in images.iter().filter_map(|name| cluster.image(name)) {
            let share = image.rows.len() as f64 / cluster.len() as f64;
            let size = (image.size as f64 * share) as i64;
            for row in &image.rows {
                scores.get_mut(row.index()).into_iter().for_each(|sum| *sum = sum.saturating_add(size));
            }
        }
        let most = SIZE_MAX.saturating_mul(i64::try_from(images.len()).unwrap_or(i64::MAX));
        for score in &mut scores {
            let above = (*score).clamp(SIZE_MIN, most.max(SIZE_MIN)) - SIZE_MIN;
            *score = SCORE_MAX.saturating_mul(above) / (most - SIZE_MIN).max(1);
        }
        scores.iter().any(|score| *score > 0).then(|| Box::new(Scores(scores)) as Box<dyn NodeScore>)
    }
}

impl SchedulingSignature for ImageLocality {
    fn signature(&self) -> SignatureFields {
        SignatureFields::Images
    }

    fn score_epoch(&self, cluster: &Cluster) -> u64 {
        cluster.images_epoch()
    }
}

impl NodeScore for Scores {
    fn score(&self, _: &Cluster, row: Row) -> i64 {
        self.0.get(row.index()).copied().unwrap_or(0)
    }

    fn is_local(&self) -> bool {
        false
    }

    fn scale(&self) -> Option<Scale> {
        Some(as_it_is)
    }
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::{Nodes, node, scored};
    use serde_json::{Value, json};

    use super::*;

    fn nodes(images: &[&[(&str, i64)]]) -> Nodes {
        let of_node = |(number, images): (usize, &&[(&str, i64)])| {
            let images = images.iter().map(|(name, mib)| json!({"names": [name], "sizeBytes": mib << 20}));
            node(&format!("n{number}"), &json!({"status": {"images": images.collect::<Vec<_>>()}}))
        };
        images.iter().enumerate().map(of_node).collect()
    }

    fn of(images: &[&str]) -> Value {
        json!({"containers": images.iter().map(|image| json!({"image": image})).collect::<Vec<_>>()})
    }

    #[test]
    fn large_images_count_as_far_as_nodes_have_them() {
        let small = &[("db:1", 40), ("cache:latest", 300), ("web:latest", 2000)][..];
        let large = &[("db:1", 250), ("search:latest", 10)][..];
        let scores =
            |nodes: &[&[(&str, i64)]], images: &[&str]| scored(&ImageLocality, &self::nodes(nodes), &of(images));
        // Half of 40 MiB is below the threshold, and nothing else is there.
        assert_eq!(scores(&[&[("db:1", 40)], &[]], &["db:1"]), None);
        // 300 / 2 of 2000 for two containers: (150 - 23) / (2000 - 23). Of 250 both nodes have some, by the first one's size.
        assert_eq!(scores(&[small, large], &["cache", "missing"]), Some(vec![6, 0]));
        assert_eq!(scores(&[large, small], &["db:1", "missing"]), Some(vec![11, 11]));
        // Half of 2000 MiB is all that one container can count.
        assert_eq!(scores(&[small, large], &["web"]), Some(vec![100, 0]));
        assert_eq!(scores(&[small, large], &["web", "search"]), Some(vec![49, 0]));
        // On one of three nodes: 666 MiB.
        assert_eq!(scores(&[small, large, &[]], &["web:latest"]), Some(vec![65, 0, 0]));
        assert_eq!(scores(&[small], &[]), None);
    }

    #[test]
    fn init_containers_count_like_others() {
        let spec = json!({"initContainers": [{"name": "i", "image": "web"}], "containers": [{"image": "db:1"}]});
        let nodes = nodes(&[&[("web:latest", 400)], &[("db:1", 600)]]);
        // 200 and 300 of 2000.
        assert_eq!(scored(&ImageLocality, &nodes, &spec), Some(vec![8, 14]));
    }
}
