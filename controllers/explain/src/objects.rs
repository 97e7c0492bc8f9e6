//! The objects that an explanation rests on: of a cluster, or of files.

use anyhow::{Context as _, Result, anyhow, bail};
use jiff::Timestamp;
use koord_manager_controllers::{
    ConfigSource,
    noderesource::Configuration,
    view::{ConfigMapView, DeviceView, NodeMetricView, NodeSloView, NodeView, PodView, TopologyView},
};
use koord_program::{
    connect::{self, Server},
    files,
    listing::{self, Part},
    names::{few, question},
    permission::Missing,
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    cache::{Applied, Cache},
    projection::Projection,
};
use koord_types::slo_config::{
    COLOCATION_CONFIG, CPU_NORMALIZATION_CONFIG, ColocationConfig, CpuNormalizationConfig,
    RESOURCE_AMPLIFICATION_CONFIG, ResourceAmplificationConfig,
};
use serde_json::Value;

use crate::NodeOptions;

/// The objects that an explanation rests on, as the manager keeps them.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) nodes: Cache<NodeView>,
    pub(crate) metrics: Cache<NodeMetricView>,
    pub(crate) pods: Cache<PodView>,
    pub(crate) topologies: Cache<TopologyView>,
    pub(crate) devices: Cache<DeviceView>,
    pub(crate) slos: Cache<NodeSloView>,
    pub(crate) config_maps: Cache<ConfigMapView>,
    pub(crate) now: Timestamp,
    config_map: String,
}

impl Objects {
    pub(crate) async fn gather(options: &NodeOptions<'_>) -> Result<Self> {
        let source =
            ConfigSource { namespace: options.config_namespace.to_owned(), name: options.slo_config_name.to_owned() };
        let config_map = format!("{}/{}", source.namespace, source.name);
        let mut objects = Self { now: options.at.unwrap_or_else(Timestamp::now), config_map, ..Self::default() };
        if options.files.is_empty() {
            objects.fetch(options, &source).await?;
        } else {
            for object in files::objects(options.files)? {
                let kind = object["kind"].as_str().unwrap_or_default().to_owned();
                objects.add(&kind, object)?;
            }
        }
        match objects.nodes.get(options.node) {
            Some(_) => Ok(objects),
            None => Err(objects.without_node(options).await),
        }
    }

    async fn fetch(&mut self, options: &NodeOptions<'_>, source: &ConfigSource) -> Result<()> {
        let Server { client, time, .. } = connect::reach(&options.cluster).await?;
        if let (None, Some(time)) = (options.at, time) {
            self.now = time;
        }
        let name = options.node;
        let mut missing = Missing::default();
        for kind in [NodeView::KIND, NodeMetricView::KIND, TopologyView::KIND, DeviceView::KIND, NodeSloView::KIND] {
            match koord_program::listing::get(&client, &kind.url_path("", Some(name))).await {
                Ok(Some(object)) => self.add(kind.kind, object)?,
                Ok(None) => {}
                Err(error) => missing.note(error)?,
            }
        }
        let kind = ConfigMapView::KIND;
        match koord_program::listing::get(&client, &kind.url_path(&source.namespace, Some(&source.name))).await {
            Ok(Some(object)) => self.add(kind.kind, object)?,
            Ok(None) => {}
            Err(error) => missing.note(error)?,
        }
        let query = listing::query(&format!("spec.nodeName={name}"), "");
        let path = ResourceKind::POD.url_path("", None);
        let pods =
            listing::each(&client, &path, &query, Part::Whole, |pod| self.add("Pod", serde_json::from_str(pod)?));
        if let Err(error) = pods.await {
            missing.note(error).context("the pods cannot be listed")?;
        }
        missing.none()
    }

    /// That there is no such node, with the name of one that was probably meant.
    async fn without_node(&self, options: &NodeOptions<'_>) -> anyhow::Error {
        let mut names: Vec<String> = self.nodes.iter().map(|(name, _)| name.to_string()).collect();
        let mut otherwise = "`kubectl get nodes` shows those that are".to_owned();
        if !options.files.is_empty() {
            otherwise = if names.is_empty() {
                "the files hold no node".to_owned()
            } else {
                format!("the files hold: {}", few(&names))
            };
        } else if let Ok(client) = connect::client(&options.cluster).await {
            // What cannot be listed is only not suggested.
            let _ = listing::each(&client, &ResourceKind::NODE.url_path("", None), "", Part::Metadata, |node| {
                let node: Value = serde_json::from_str(node)?;
                names.extend(node["metadata"]["name"].as_str().map(str::to_owned));
                Ok(())
            })
            .await;
        }
        let known = names.iter().map(String::as_str);
        anyhow!("there is no node {}; {}", options.node, question(options.node, known).unwrap_or(otherwise))
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
    pub(crate) fn config(&self) -> Option<&ConfigMapView> {
        self.config_maps.get(&self.config_map).map(|entry| &*entry.value)
    }

    /// What the configuration says about amounts. A manager that runs keeps the last good value of a bad key; here
    /// there is none to keep.
    pub(crate) fn configuration(&self) -> Result<Configuration> {
        let text = |key: &str| self.config().and_then(|config| config.get(key));
        let wrong = |key: &str| {
            format!("ConfigMap {}, key {key}; the manager goes on with the last good value", self.config_map)
        };
        let colocation = ColocationConfig::parse(text(COLOCATION_CONFIG));
        let normalization = CpuNormalizationConfig::parse(text(CPU_NORMALIZATION_CONFIG));
        let amplification = ResourceAmplificationConfig::parse(text(RESOURCE_AMPLIFICATION_CONFIG));
        Ok(Configuration {
            colocation: colocation.with_context(|| wrong(COLOCATION_CONFIG))?,
            normalization: Some(normalization.with_context(|| wrong(CPU_NORMALIZATION_CONFIG))?),
            amplification: Some(amplification.with_context(|| wrong(RESOURCE_AMPLIFICATION_CONFIG))?),
        })
    }
}

/// Puts an object into a cache.
fn keep<P: Projection>(cache: &mut Cache<P>, mut object: Value) -> Result<()> {
    files::as_stored(&mut object, P::KIND.namespaced);
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let (_, applied) = cache.upsert(&object.to_string()).with_context(|| format!("{} {name}", P::KIND.kind))?;
    if let Applied::Quarantined(_, unread) = applied {
        bail!("{} {name} cannot be read: {}", P::KIND.kind, unread.reason);
    }
    Ok(())
}
