//! From a webhook's service to an address.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde_json::Value;

use crate::encode;
use crate::server::ApiServer;

/// Where a service is really found: `NAMESPACE/NAME[:PORT]=HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAlias {
    /// Namespace of the service.
    pub namespace: String,
    /// Name of the service.
    pub name: String,
    /// Port of the service; none for all of them.
    pub port: Option<u16>,
    /// Where to connect instead.
    pub address: SocketAddr,
}

/// Why an alias is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected NAMESPACE/NAME=HOST:PORT, such as koordinator-system/koordinator-webhook-service=127.0.0.1:9443")]
pub struct ServiceAliasError;

impl FromStr for ServiceAlias {
    type Err = ServiceAliasError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (service, address) = text.split_once('=').ok_or(ServiceAliasError)?;
        let (namespace, name) = service.split_once('/').ok_or(ServiceAliasError)?;
        let (name, port) = match name.split_once(':') {
            None => (name, None),
            Some((name, port)) => (name, Some(port.parse().map_err(|_| ServiceAliasError)?)),
        };
        if namespace.is_empty() || name.is_empty() {
            return Err(ServiceAliasError);
        }
        let address = address.replace("localhost", "127.0.0.1").parse().map_err(|_| ServiceAliasError)?;
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned(), port, address })
    }
}

/// The address behind a service's port: an alias, else a ready endpoint.
pub(super) fn resolve(
    core: &ApiServer,
    aliases: &[ServiceAlias],
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<SocketAddr, String> {
    let alias = aliases.iter().find(|alias| {
        alias.namespace == namespace && alias.name == name && alias.port.is_none_or(|known| known == port)
    });
    if let Some(alias) = alias {
        return Ok(alias.address);
    }
    let services = core.registry.get("", "v1", "services");
    let service = services.and_then(|definition| core.object(definition, namespace, name));
    let service = service.ok_or_else(|| format!("service \"{name}\" not found"))?;
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let service_port = ports
        .into_iter()
        .find(|known| known["port"] == port)
        .ok_or_else(|| format!("no service port {port} found for service \"{name}\""))?;
    let port_name = service_port["name"].as_str().unwrap_or_default();
    from_slices(core, namespace, name, port_name)
        .or_else(|| from_endpoints(core, namespace, name, port_name))
        .ok_or_else(|| format!("no endpoints available for service \"{name}\""))
}

fn socket(ip: &Value, port: &Value) -> Option<SocketAddr> {
    let ip: IpAddr = ip.as_str()?.parse().ok()?;
    Some(SocketAddr::new(ip, u16::try_from(port.as_u64()?).ok()?))
}

fn named_port<'a>(ports: &'a Value, name: &str) -> Option<&'a Value> {
    let mut ports = ports.as_array()?.iter();
    Some(&ports.find(|port| port["name"].as_str().unwrap_or_default() == name)?["port"])
}

fn from_slices(core: &ApiServer, namespace: &str, service: &str, port_name: &str) -> Option<SocketAddr> {
    let definition = core.registry.get("discovery.k8s.io", "v1", "endpointslices")?;
    let prefix = definition.key_prefix(namespace);
    let mut slices = core
        .store
        .collection(definition.collection)
        .range(&prefix, "")
        .map(|(_, record)| encode::value(definition, record));
    slices.find_map(|slice| {
        if slice["metadata"]["labels"]["kubernetes.io/service-name"] != service {
            return None;
        }
        let port = named_port(&slice["ports"], port_name)?;
        let mut endpoints = slice["endpoints"].as_array()?.iter();
        let ready = endpoints.find(|endpoint| endpoint["conditions"]["ready"] != false)?;
        socket(&ready["addresses"][0], port)
    })
}

fn from_endpoints(core: &ApiServer, namespace: &str, service: &str, port_name: &str) -> Option<SocketAddr> {
    let definition = core.registry.get("", "v1", "endpoints")?;
    let endpoints = core.object(definition, namespace, service)?;
    endpoints["subsets"]
        .as_array()?
        .iter()
        .find_map(|subset| socket(&subset["addresses"][0]["ip"], named_port(&subset["ports"], port_name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_read() {
        let alias: ServiceAlias = "n/s:443=127.0.0.1:9443".parse().unwrap();
        assert_eq!((alias.namespace.as_str(), alias.name.as_str(), alias.port), ("n", "s", Some(443)));
        assert_eq!("n/s=localhost:1".parse::<ServiceAlias>().unwrap().address, SocketAddr::from(([127, 0, 0, 1], 1)));
        for wrong in ["n/s", "s=127.0.0.1:1", "n/=127.0.0.1:1", "n/s=nowhere"] {
            assert!(wrong.parse::<ServiceAlias>().is_err(), "{wrong}");
        }
    }
}
