//! RDMA devices of containers.

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

use koord_types::{
    device::DeviceType,
    device_protocol::{DEVICE_ALLOCATED, DeviceAllocation},
};

use crate::{
    adjustment::{Adjustment, Device},
    pod_view::PodView,
    refused::Refused,
};

const CONNECTION_MANAGER: &str = "/dev/infiniband/rdma_cm";
/// Everyone may read and write.
const FILE_MODE: u32 = 0o666;

/// Looks devices of the node up.
pub trait DeviceReader {
    /// The name of the first verbs device of a PCI function, such as `uverbs0`.
    fn verbs_device(&self, pci_address: &str) -> Option<String>;

    /// The major and minor number of a character device.
    fn numbers(&self, path: &str) -> Option<(u32, u32)>;
}

/// The devices of this machine.
#[derive(Clone, Debug)]
pub struct HostDevices {
    /// `/sys`.
    pub sys: PathBuf,
}

impl DeviceReader for HostDevices {
    fn verbs_device(&self, pci_address: &str) -> Option<String> {
        let folder = self.sys.join("bus/pci/devices").join(pci_address).join("infiniband_verbs");
        let names = fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.min()
    }

    fn numbers(&self, path: &str) -> Option<(u32, u32)> {
        let device = fs::metadata(path).ok()?.rdev();
        // The layout of device numbers in the kernel's interface.
        let major = ((device >> 8) & 0xfff) | ((device >> 32) & 0xffff_f000);
        let minor = (device & 0xff) | ((device >> 12) & 0xffff_ff00);
        Some((major as u32, minor as u32))
    }
}

/// Adds the devices of a container whose pod has RDMA devices: the connection manager, and the verbs device of each virtual function, else of each device.
/// When one is not found, nothing is added.
pub(crate) fn inject(
    devices: &dyn DeviceReader,
    pod: &PodView<'_>,
    adjustment: &mut Adjustment,
    refused: &mut Vec<Refused>,
) {
    let Ok(Some(allocations)) = pod.read(&DEVICE_ALLOCATED, refused) else { return };
    let cards = allocations.0.get(&DeviceType::Rdma).map(Vec::as_slice).unwrap_or_default();
    if cards.is_empty() {
        return;
    }
    match paths(devices, cards).and_then(|paths| paths.into_iter().map(|path| device(devices, path)).collect()) {
        Ok::<Vec<Device>, String>(found) => adjustment.devices.extend(found),
        Err(reason) => refused.push(pod.refusal(DEVICE_ALLOCATED.name(), reason)),
    }
}

fn paths(devices: &dyn DeviceReader, cards: &[DeviceAllocation]) -> Result<Vec<String>, String> {
    let mut paths = vec![CONNECTION_MANAGER.to_owned()];
    for card in cards {
        let functions = card.extension.iter().flat_map(|extension| &extension.virtual_functions);
        let mut addresses: Vec<&str> = functions.map(|function| function.bus_id.as_str()).collect();
        if addresses.is_empty() {
            addresses.push(&card.id);
        }
        for address in addresses {
            // An address becomes the name of a folder.
            let is_address = !address.is_empty()
                && address.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'))
                && !address.starts_with('.');
            let name = if is_address { devices.verbs_device(address) } else { None };
            let name = name.ok_or_else(|| format!("PCI device {address:?} has no verbs device"))?;
            paths.push(format!("/dev/infiniband/{name}"));
        }
    }
    Ok(paths)
}

fn device(devices: &dyn DeviceReader, path: String) -> Result<Device, String> {
    let (major, minor) = devices.numbers(&path).ok_or_else(|| format!("there is no device {path}"))?;
    Ok(Device { path, kind: "c", major, minor, file_mode: FILE_MODE })
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::CgroupPath;
    use koord_types::protocol::Labels;

    use super::*;

    struct Devices;

    impl DeviceReader for Devices {
        fn verbs_device(&self, pci_address: &str) -> Option<String> {
            let known = [("0000:5e:00.2", "uverbs2"), ("0000:5e:00.0", "uverbs0")];
            known.iter().find(|(address, _)| *address == pci_address).map(|(_, name)| (*name).to_owned())
        }

        fn numbers(&self, path: &str) -> Option<(u32, u32)> {
            match path.strip_prefix("/dev/infiniband/uverbs") {
                Some(number) => Some((231, 192 + number.parse::<u32>().ok()?)),
                None => (path == CONNECTION_MANAGER).then_some((10, 58)),
            }
        }
    }

    fn injected(annotation: &str) -> Result<Vec<(String, u32, u32)>, String> {
        let (labels, cgroup) = (Labels::new(), CgroupPath::root());
        let annotations = Labels::from([(DEVICE_ALLOCATED.name().to_owned(), annotation.to_owned())]);
        let pod = PodView {
            namespace: "shop",
            name: "a",
            uid: "1",
            labels: &labels,
            annotations: &annotations,
            last_good: None,
            cgroup: &cgroup,
            listed: None,
        };
        let (mut adjustment, mut refused) = (Adjustment::default(), Vec::new());
        inject(&Devices, &pod, &mut adjustment, &mut refused);
        match refused.pop() {
            Some(refused) => Err(refused.to_string()),
            None => {
                Ok(adjustment.devices.into_iter().map(|device| (device.path, device.major, device.minor)).collect())
            }
        }
    }

    #[test]
    fn virtual_functions_stand_for_their_card() {
        let manager = ("/dev/infiniband/rdma_cm".to_owned(), 10, 58);
        let verbs = |number: u32| (format!("/dev/infiniband/uverbs{number}"), 231, 192 + number);
        for (annotation, devices) in [
            (
                r#"{"rdma":[{"minor":0,"id":"0000:5e:00.0","extension":{"vfs":[{"busID":"0000:5e:00.2"}]}}]}"#,
                vec![verbs(2)],
            ),
            (r#"{"rdma":[{"minor":0,"id":"0000:5e:00.0"}]}"#, vec![verbs(0)]),
        ] {
            let expected: Vec<_> = std::iter::once(manager.clone()).chain(devices).collect();
            assert_eq!(injected(annotation), Ok(expected));
        }
        assert_eq!(injected(r#"{"gpu":[{"minor":0}]}"#), Ok(vec![]));
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        for (id, error) in [
            ("0000:5e:00.9", "PCI device \"0000:5e:00.9\" has no verbs device"),
            ("../x", "PCI device \"../x\" has no verbs device"),
            ("", "PCI device \"\" has no verbs device"),
        ] {
            let annotation = format!(r#"{{"rdma":[{{"minor":0,"id":"{id}"}}]}}"#);
            let expected = format!("pod shop/a: scheduling.koordinator.sh/device-allocated: {error}");
            assert_eq!(injected(&annotation), Err(expected));
        }
    }

    #[test]
    fn devices_of_the_machine_are_looked_up() {
        let folder = tempfile::tempdir().unwrap();
        let verbs = folder.path().join("bus/pci/devices/0000:5e:00.2/infiniband_verbs");
        std::fs::create_dir_all(verbs.join("uverbs3")).unwrap();
        std::fs::create_dir_all(verbs.join("uverbs2")).unwrap();
        let devices = HostDevices { sys: folder.path().to_owned() };
        assert_eq!(devices.verbs_device("0000:5e:00.2").as_deref(), Some("uverbs2"));
        assert_eq!(devices.verbs_device("0000:5e:00.3"), None);
        assert_eq!((devices.numbers("/dev/null"), devices.numbers("/dev/none")), (Some((1, 3)), None));
    }
}
