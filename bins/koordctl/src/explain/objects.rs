//! The objects that an explanation rests on: of a cluster, or of files.

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use koord_api::slo_config::{
    COLOCATION_CONFIG, CPU_NORMALIZATION_CONFIG, ColocationConfig, CpuNormalizationConfig,
    RESOURCE_AMPLIFICATION_CONFIG, ResourceAmplificationConfig,
};
use koord_manager_controllers::{
    ConfigSource,
    noderesource::Configuration,
    view::{ConfigMapView, DeviceView, NodeMetricView, NodeSloView, NodeView, PodView, TopologyView},
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    cache::{Applied, Cache},
    projection::Projection,
};
use kube::Client;
use serde_json::Value;

use crate::{cli::ExplainArgs, connect, manifests};

/// The objects that an explanation rests on, as the manager keeps them.
#[derive(Default)]
pub(super) struct Objects {
    pub(super) nodes: Cache<NodeView>,
    pub(super) metrics: Cache<NodeMetricView>,
    pub(super) pods: Cache<PodView>,
    pub(super) topologies: Cache<TopologyView>,
    pub(super) devices: Cache<DeviceView>,
    pub(super) slos: Cache<NodeSloView>,
    pub(super) config_maps: Cache<ConfigMapView>,
    pub(super) now: Timestamp,
    config_map: String,
}

impl Objects {
    pub(super) async fn gather(args: &ExplainArgs) -> Result<Self> {
        let source = ConfigSource {
            namespace: args.configuration.config_namespace.clone(),
            name: args.configuration.slo_config_name.clone(),
        };
        let config_map = format!("{}/{}", source.namespace, source.name);
        let mut objects = Self { now: args.at.unwrap_or_else(Timestamp::now), config_map, ..Self::default() };
        if args.filename.is_empty() {
            objects.fetch(args, &source).await?;
        } else {
            for object in manifests::objects(&args.filename)? {
                let kind = object["kind"].as_str().unwrap_or_default().to_owned();
                objects.add(&kind, object)?;
            }
        }
        if objects.nodes.get(&args.node).is_none() {
            bail!("there is no node {}; `kubectl get nodes` shows those that are", args.node);
        }
        Ok(objects)
    }

    async fn fetch(&mut self, args: &ExplainArgs, source: &ConfigSource) -> Result<()> {
        let client = connect::client(&args.answer.cluster).await?;
        if let (None, Some(time)) = (args.at, connect::server_time(&client).await?) {
            self.now = time;
        }
        let name = args.node.as_str();
        for kind in [NodeView::KIND, NodeMetricView::KIND, TopologyView::KIND, DeviceView::KIND, NodeSloView::KIND] {
            if let Some(object) = get(&client, &kind.url_path("", Some(name))).await? {
                self.add(kind.kind, object)?;
            }
        }
        let kind = ConfigMapView::KIND;
        if let Some(object) = get(&client, &kind.url_path(&source.namespace, Some(&source.name))).await? {
            self.add(kind.kind, object)?;
        }
        let pods = format!("{}?fieldSelector=spec.nodeName={name}", ResourceKind::POD.url_path("", None));
        let mut pods = get(&client, &pods).await?.unwrap_or_default();
        for pod in pods["items"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            self.add("Pod", pod)?;
        }
        Ok(())
    }

    /// Takes an object, unless it is of a kind that no explanation needs.
    fn add(&mut self, kind: &str, object: Value) -> Result<()> {
        match kind {
            "Node" => keep(&mut self.nodes, object),
            "NodeMetric" => keep(&mut self.metrics, object),
            "Pod" => keep(&mut self.pods, object),
            "NodeResourceTopology" => keep(&mut self.topologies, object),
            "Device" => keep(&mut self.devices, object),
            "NodeSLO" => keep(&mut self.slos, object),
            "ConfigMap" => keep(&mut self.config_maps, object),
            _ => Ok(()),
        }
    }

    /// The configuration's data; none where there is no ConfigMap.
    pub(super) fn config(&self) -> Option<&ConfigMapView> {
        self.config_maps.get(&self.config_map).map(|entry| &*entry.value)
    }

    /// What the configuration says about amounts. A manager that runs keeps the last good value of a bad key; here
    /// there is none to keep.
    pub(super) fn configuration(&self) -> Result<Configuration> {
        let text = |key: &str| self.config().and_then(|config| config.get(key));
        let wrong = |key: &str| {
            format!("ConfigMap {}, key {key}; the manager goes on with the last good value", self.config_map)
        };
        let colocation = ColocationConfig::parse(text(COLOCATION_CONFIG));
        let normalization = CpuNormalizationConfig::parse(text(CPU_NORMALIZATION_CONFIG));
        let amplification = ResourceAmplificationConfig::parse(text(RESOURCE_AMPLIFICATION_CONFIG));
        Ok(Configuration {
            colocation: colocation.with_context(|| wrong(COLOCATION_CONFIG))?,
            normalization: normalization.with_context(|| wrong(CPU_NORMALIZATION_CONFIG))?,
            amplification: amplification.with_context(|| wrong(RESOURCE_AMPLIFICATION_CONFIG))?,
        })
    }
}

/// Puts an object into a cache.
fn keep<P: Projection>(cache: &mut Cache<P>, mut object: Value) -> Result<()> {
    manifests::as_stored(&mut object, P::KIND.namespaced);
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let (_, applied) = cache.upsert(&object.to_string()).with_context(|| format!("{} {name}", P::KIND.kind))?;
    if let Applied::Quarantined(_, unread) = applied {
        bail!("{} {name} cannot be read: {}", P::KIND.kind, unread.reason);
    }
    Ok(())
}

async fn get(client: &Client, path: &str) -> Result<Option<Value>> {
    let request = http::Request::get(path).body(Vec::new())?;
    match client.request(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        result => result.map(Some).with_context(|| format!("{path} cannot be read")),
    }
}
