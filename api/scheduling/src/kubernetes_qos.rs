//! Kubernetes' own QoS class of a pod.

use koord_resource::Quantity;

/// The request and the limit of one container for one resource.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds<'a> {
    /// None counts as the limit, by which the API server defaults it.
    pub request: Option<&'a Quantity>,
    /// None is no limit.
    pub limit: Option<&'a Quantity>,
}

/// The class that follows from the bounds of CPU and memory of every container, init containers included.
pub fn kubernetes_qos<'a>(containers: impl IntoIterator<Item = [Bounds<'a>; 2]>) -> &'static str {
    let positive = |amount: Option<&Quantity>| amount.is_some_and(|amount| amount.signum() > 0);
    let (mut any, mut guaranteed) = (false, true);
    for Bounds { request, limit } in containers.into_iter().flatten() {
        any |= positive(request) || positive(limit);
        guaranteed &= positive(limit) && request.is_none_or(|request| Some(request) == limit);
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_follows_from_requests_and_limits_of_all_containers() {
        let (one, two, zero): (Quantity, Quantity, Quantity) =
            ("1".parse().unwrap(), "2".parse().unwrap(), Quantity::ZERO);
        let bounds = |request, limit| Bounds { request, limit };
        let full = [bounds(Some(&one), Some(&one)), bounds(None, Some(&two))];
        let bare = [Bounds::default(); 2];
        let half = [bounds(Some(&one), Some(&one)), Bounds::default()];
        let less = [bounds(Some(&one), Some(&two)), bounds(Some(&one), Some(&one))];
        let nothing = [bounds(Some(&zero), None), Bounds::default()];
        for (containers, class) in [
            (vec![full], "Guaranteed"),
            (vec![full, full], "Guaranteed"),
            (vec![full, bare], "Burstable"),
            (vec![half], "Burstable"),
            (vec![less], "Burstable"),
            (vec![bare], "BestEffort"),
            (vec![nothing], "BestEffort"),
            (vec![], "BestEffort"),
        ] {
            assert_eq!(kubernetes_qos(containers.clone()), class, "{containers:?}");
        }
    }
}
