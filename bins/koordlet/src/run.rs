//! Wires koordlet and runs it.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Result;
use koord_koordlet_resolver::MountedFiles;
use koord_koordlet_runtime::{
    Agent, Feed, Host, Interfaces, KernelCookies, KubeletClient, Measures, Now, Runtimes, Settings, SharedGpus, Worker,
    audit_pages, cgroup_version,
    delivery::{self, Connections, NodeFolders, PodFolders, PressureFiles},
    disks_by_programs, install, node_pages,
    traffic::DefaultCard,
};
use koord_koordlet_system::{Cgroups, KernelWriter, Layout, ObservingWriter, PressureResource, Version, Writer};
use koord_program::{
    ControllerSettings, Dependencies, Program,
    component::{api_server, warn_of_flags},
};
use koord_runtime::{events::EventGroup, metrics::Exposition};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{identity::BUILD, options::Checked};

/// Runs the agent of these options until `stop`.
///
/// # Errors
///
/// The API server's address or credentials cannot be used, or a port cannot be had. What the node lacks is no error.
pub async fn run(checked: Checked, stop: CancellationToken) -> Result<()> {
    if let Some(line) = checked.options.version.line(&BUILD) {
        println!("{line}");
        return Ok(());
    }
    warn_of_flags(&checked.options.without_effect, &[]);
    checked.gates.warn_without_effect();
    let kubeconfig = checked.options.kubeconfig.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    let config = api_server(None, &kubeconfig).await?;
    let dependencies = Dependencies::connected_by(config.clone())?;
    let settings = checked.settings();
    let runtimes = checked.runtimes();
    let kubelet = KubeletClient::new(settings.kubelet.clone(), config);
    let program = checked.program_settings();
    let exposition = checked.options.metrics.with_manifest(checked.exposition);
    run_with(settings, program, exposition, kubelet, runtimes, dependencies, stop).await
}

/// Runs an agent with given dependencies until `stop`.
///
/// # Errors
///
/// A port cannot be had.
pub async fn run_with(
    settings: Settings,
    program: ControllerSettings,
    exposition: Exposition,
    kubelet: KubeletClient,
    runtimes: Runtimes,
    dependencies: Dependencies,
    stop: CancellationToken,
) -> Result<()> {
    let mounted = || {
        cgroup_version(&settings.roots.cgroup).unwrap_or_else(|error| {
        let folder = settings.roots.cgroup.display();
        tracing::error!("{folder} cannot be looked at: {error}; mount the node's cgroups there or set --cgroup-root-dir. Nothing is measured and enforced until then");
        Version::V1
    })
    };
    let version = settings.cgroup_version.unwrap_or_else(mounted);
    let mut host = Host::discover(&settings.roots, version);
    host.disk_programs = Some(Box::new(disks_by_programs));
    // Processes and network cards are those of this machine, whatever trees of files the agent is given.
    if settings.roots.proc == Path::new("/proc") && !settings.only_observes {
        host.interfaces = Interfaces {
            core_scheduling: Some(Box::new(KernelCookies)),
            traffic: Some(Box::new(DefaultCard::default())),
            terway: Some(settings.delivery.terway.clone()),
        };
    }
    tracing::info!(
        version = ?host.layout.version,
        driver = ?host.layout.driver,
        found_by = ?host.driver_source,
        cpus = host.machine.topology.cpus().len(),
        "the node"
    );
    let mut program = Program::new(BUILD, program, dependencies, &stop)?;
    let core = program.core();
    core.metrics().show(exposition)?;
    let feed = Feed::of(core, &settings.node_name, settings.features.has("BlkIOReconcile"));
    let only_observes = settings.only_observes;
    let writer =
        || -> Box<dyn Writer> { if only_observes { Box::new(ObservingWriter) } else { Box::new(KernelWriter) } };
    let cgroups = Cgroups::new(settings.roots.cgroup.clone(), host.layout);
    let (cgroup_root, proc) = (settings.roots.cgroup.clone(), settings.roots.proc.clone());
    let node = NodeFolders {
        resctrl: settings.roots.sys_fs.join("resctrl"),
        sys: settings.roots.sys.clone(),
        files: MountedFiles::new(cgroups, writer()),
    };
    let (delivery, hooks) = (settings.delivery.clone(), settings.hooks.clone());
    let clock = Arc::clone(core.clock());
    let start = Now { moment: clock.moment(), time: clock.now() };
    let gpus = settings.reads_nvidia_gpus.then(|| (settings.roots.sys.clone(), settings.intervals.collect));
    let (audits, readers, random) = (settings.serves_audit, settings.state_readers, core.random().clone());
    let agent = Arc::new(Mutex::new(Agent::new(settings, host, writer(), random.number(), start)));
    let of_agent = Arc::clone(&agent);
    let layout: Arc<dyn Fn() -> Layout + Send + Sync> = Arc::new(move || of_agent.lock().layout());
    let pod_folders = PodFolders { root: cgroup_root.clone(), layout: Arc::clone(&layout) };
    let of_pods = move |resource: PressureResource| {
        let layout = layout();
        Cgroups::new(cgroup_root.clone(), layout).path(&layout.kubepods(), resource.of_cgroup())
    };
    let pressure_files = PressureFiles { of_pods: Arc::new(of_pods), proc };
    let gpus_end = Arc::new(AtomicBool::new(false));
    if let Some((sys, interval)) = gpus {
        let gpus = SharedGpus::default();
        gpus.start(sys, interval, Arc::clone(&gpus_end))?;
        agent.lock().use_gpus(gpus);
    }
    let measures = Measures::new(core.metrics(), Arc::clone(&agent))?;
    let shown_by = Arc::clone(&clock);
    core.before_metrics(move || measures.refresh(Now { moment: shown_by.moment(), time: shown_by.now() }));
    let worker = Worker::new(Arc::clone(&agent), feed, kubelet, runtimes, core);
    let inputs = worker.inputs();
    let mut manager = program.manager_led_by(|_| None);
    manager.show_all_metrics_at_once();
    // As the original's: readers find its component in `source`.
    manager.write_events_through(EventGroup::Core);
    if audits {
        manager.serve_also(audit_pages(Arc::clone(&agent), Arc::clone(&clock), random.clone()));
    }
    manager.serve_also(node_pages(Arc::clone(&agent), Arc::clone(&clock), BUILD.version, readers));
    install(worker, &mut manager);
    let connections = Connections {
        settings: delivery,
        hooks,
        only_observes,
        node,
        pod_folders,
        pressure_files,
        agent,
        inputs,
        clock,
        random,
    };
    delivery::install(connections, &mut manager);
    let result = manager.run(stop).await;
    gpus_end.store(true, Ordering::Relaxed);
    Ok(result?)
}
