//! Templates by which GPUs of a model can be divided.

use std::collections::BTreeMap;

use koord_resource::ResourceList;

use super::{
    amounts::{DeviceAmounts, DeviceResource},
    request::GpuRequest,
};

/// The templates of each model of GPU, with what a share by it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuTemplates(BTreeMap<String, BTreeMap<String, DeviceAmounts>>);

/// The names of templates of each model of GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateNames(BTreeMap<String, Vec<String>>);

impl GpuTemplates {
    /// The templates by `vendor-model` and name.
    pub fn new(templates: &BTreeMap<String, BTreeMap<String, ResourceList>>) -> Self {
        let of_model = |templates: &BTreeMap<String, ResourceList>| {
            templates.iter().map(|(name, resources)| (name.clone(), DeviceAmounts::read(resources))).collect()
        };
        Self(templates.iter().map(|(model, templates)| (model.clone(), of_model(templates))).collect())
    }

    /// Whether a share of a GPU must be one of a template, because it has one of these resources.
    pub fn concern(request: &GpuRequest, resources: &[DeviceResource]) -> bool {
        request.is_shared && resources.iter().any(|resource| request.each.get(*resource).is_some())
    }

    /// The templates of which a share of a GPU must be one, because it has one of these resources: those that have
    /// exactly what is requested. None where no template is needed.
    pub fn needed(&self, request: &GpuRequest, resources: &[DeviceResource]) -> Option<TemplateNames> {
        if !Self::concern(request, resources) {
            return None;
        }
        let of_model = |templates: &BTreeMap<String, DeviceAmounts>| {
            let alike = templates.iter().filter(|(_, amounts)| **amounts == request.each);
            alike.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let models = self.0.iter().map(|(model, templates)| (model.clone(), of_model(templates)));
        Some(TemplateNames(models.filter(|(_, names)| !names.is_empty()).collect()))
    }
}

impl TemplateNames {
    /// Those of one model.
    pub fn of(&self, vendor: &str, model: &str) -> impl Iterator<Item = &str> {
        self.0.get(&*format!("{vendor}-{model}")).into_iter().flatten().map(String::as_str)
    }

    /// Whether no model has any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::devices::testing::{request, templates};
    use koord_scheduler_testing::devices::list;

    #[test]
    fn templates_are_needed_for_shares_with_the_resources_of_templates() {
        let needed = |requests| {
            let request = request(&json!({ "requests": requests }));
            templates().needed(&request.gpus.unwrap(), &[DeviceResource::NpuCore])
        };
        let npu = |memory: &str| {
            list(&format!("gpu.shared=1 huawei.com/npu-core=3 huawei.com/npu-cpu=1 gpu-memory={memory}"))
        };
        let found = needed(npu("8Gi")).unwrap();
        assert_eq!(found.of("huawei", "Ascend-910B3").collect::<Vec<_>>(), ["small"]);
        assert_eq!((found.of("huawei", "Ascend-910B4").count(), found.of("nvidia", "Ascend-910B3").count()), (2, 0));
        assert!(needed(npu("9Gi")).unwrap().is_empty());
        assert_eq!(needed(json!({"koordinator.sh/gpu": "50"})), None);
        assert_eq!(
            needed(json!({"huawei.com/npu-core": "20", "koordinator.sh/gpu-memory-ratio": "100"})),
            None,
            "a whole one"
        );
    }
}
