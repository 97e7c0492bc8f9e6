//! One ordered stream of the changes of several caches, for a single consumer that keeps state of its own.
//!
//! A scheduler's model of the cluster has one writer; this brings it the changes of pods, nodes and whatever else it is
//! made of. Those of one cache come in order; those of several come in the order in which the program received them.

use tokio::sync::mpsc;

use crate::{cache::Change, projection::Projection, store::Store};

/// Where caches put their changes. Cheap to clone.
#[derive(Debug)]
pub struct ChangeSender<E>(mpsc::UnboundedSender<E>);

/// The consumer's end. There is one; it cannot be cloned.
#[derive(Debug)]
pub struct ChangeStream<E>(mpsc::UnboundedReceiver<E>);

/// A stream of changes as the consumer's own events. It is not bounded, because a watch cannot wait: the consumer has to
/// keep up, and [`ChangeStream::backlog`] is for its metric.
pub fn changes<E: Send + 'static>() -> (ChangeSender<E>, ChangeStream<E>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (ChangeSender(sender), ChangeStream(receiver))
}

impl<E> Clone for ChangeSender<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E: Send + 'static> ChangeSender<E> {
    /// Adds the changes of a cache from now on; `event` makes the consumer's event of each that matters.
    pub fn follow<P: Projection>(
        &self,
        store: &Store<P>,
        event: impl Fn(&Change<P>) -> Option<E> + Send + Sync + 'static,
    ) {
        let sender = self.0.clone();
        store.listen(move |change| {
            if let Some(event) = event(change) {
                // Without a consumer nobody wants it.
                let _ = sender.send(event);
            }
        });
    }
}

impl<E> ChangeStream<E> {
    /// Waits for changes and takes up to `limit` of them, in order; none when no cache feeds the stream any more.
    pub async fn next(&mut self, limit: usize) -> Vec<E> {
        let mut batch = Vec::new();
        self.0.recv_many(&mut batch, limit).await;
        batch
    }

    /// Takes up to `limit` changes that are there already, in order.
    pub fn take(&mut self, limit: usize) -> Vec<E> {
        std::iter::from_fn(|| self.0.try_recv().ok()).take(limit).collect()
    }

    /// Changes that wait.
    pub fn backlog(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use koord_resource::controller::ResourceKind;

    use super::*;
    use crate::{
        intern::Interner,
        projection::{DecodeError, MetadataOnly},
        store::Sink as _,
    };

    #[derive(Debug, PartialEq)]
    struct Node;
    #[derive(Debug, PartialEq)]
    struct Pod(i64);

    impl Projection for Node {
        const KIND: ResourceKind = ResourceKind::NODE;
        type Wire<'a> = MetadataOnly<'a>;
        type Index = ();

        fn project(_: MetadataOnly<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
            Ok(Self)
        }
    }

    impl Projection for Pod {
        const KIND: ResourceKind = ResourceKind::POD;
        type Wire<'a> = MetadataOnly<'a>;
        type Index = ();

        fn project(wire: MetadataOnly<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
            Ok(Self(wire.metadata.generation))
        }
    }

    fn object(name: &str, revision: u64) -> String {
        format!(
            r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{revision}","generation":{revision}}}}}"#
        )
    }

    #[tokio::test]
    async fn changes_of_two_caches_come_in_one_order_to_one_consumer() {
        let (nodes, pods) = (Store::<Node>::default(), Store::<Pod>::default());
        let (sender, mut stream) = changes();
        sender.follow(&nodes, |change| Some(format!("node {}", change.key)));
        sender.follow(&pods, |change| {
            let generation = change.new.as_ref()?.value.0;
            Some(format!("pod {} {generation}", change.key))
        });
        drop(sender);
        pods.upsert(&object("a", 1)).unwrap();
        nodes.upsert(&object("n", 2)).unwrap();
        nodes.upsert(&object("n", 3)).unwrap();
        pods.upsert(&object("a", 4)).unwrap();
        pods.remove(&object("a", 5)).unwrap();
        assert_eq!(stream.backlog(), 3, "an equal node and a deleted pod are no events here");
        assert_eq!(stream.next(2).await, ["pod a 1", "node n"]);
        assert_eq!(stream.take(9), ["pod a 4"]);
        drop((nodes, pods));
        assert!(stream.next(1).await.is_empty(), "no cache feeds it any more");
    }
}
