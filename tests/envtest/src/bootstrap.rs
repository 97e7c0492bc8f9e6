//! Objects that every cluster has from its first moment.

use http::Method;
use serde_json::{Value, json};

use crate::{
    kinds::SYSTEM_PRIORITY_CLASSES,
    metadata,
    request::ApiRequest,
    server::{ApiServer, Outcome},
    status::ApiError,
};

/// Makes what is missing: namespaces, priority classes, the `kubernetes` service. What is there stays as it is.
pub fn run(core: &mut ApiServer) -> Result<(), ApiError> {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        create(core, "/api/v1/namespaces", &json!({"metadata": {"name": name}}))?;
    }
    for (name, value, description) in SYSTEM_PRIORITY_CLASSES {
        let class = json!({"metadata": {"name": name}, "value": value, "description": description});
        create(core, "/apis/scheduling.k8s.io/v1/priorityclasses", &class)?;
    }
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": labels},
        "spec": {
            "clusterIP": "10.0.0.1", "type": "ClusterIP",
            "ports": [{"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"}],
        },
    });
    create(core, "/api/v1/namespaces/default/services", &service)
}

fn create(core: &mut ApiServer, path: &str, object: &Value) -> Result<(), ApiError> {
    let known = ApiRequest::new(Method::GET, &format!("{path}/{}", metadata::text(object, "name")), "");
    if matches!(core.handle(&known), Outcome::Done(response) if response.code == 200) {
        return Ok(());
    }
    let mut request = ApiRequest::new(Method::POST, path, object.to_string());
    "kube-apiserver".clone_into(&mut request.user_agent);
    match core.handle(&request) {
        Outcome::Done(response) if response.code == 201 => Ok(()),
        Outcome::Done(response) => {
            let message = String::from_utf8_lossy(&response.body).into_owned();
            Err(ApiError::internal(format!("cannot make {path}: {message}")))
        }
        // A data directory may hold webhook configurations; the objects were made before those.
        Outcome::Review(_) | Outcome::Convert(_) | Outcome::Watch(_) => Ok(()),
    }
}
