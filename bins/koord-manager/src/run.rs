//! Wires the manager and runs it.

use std::sync::Arc;

use koord_manager_assembly::{BUILD, Checked, add_controllers, webhook_defaults};
use koord_program::{Dependencies, Program};
use koord_runtime::clock::SystemClock;
use koord_webhook_handlers::QuotaEvaluator;
use tokio_util::sync::CancellationToken;

/// Runs the manager of these options until `stop`.
pub async fn run(checked: Checked, stop: CancellationToken) -> anyhow::Result<()> {
    let dependencies = Dependencies::of_process(checked.settings.kubeconfig.as_deref()).await?;
    let environment = koord_webhook_server::Environment::read(webhook_defaults())?;
    run_with(checked, dependencies, environment, stop).await
}

/// Runs a manager with given dependencies and webhook settings until `stop`.
pub async fn run_with(
    checked: Checked,
    dependencies: Dependencies,
    environment: koord_webhook_server::Environment,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    checked.settings.gates.warn_without_effect();
    let mut program = Program::new(BUILD, checked.settings.clone(), dependencies, &stop)?;
    add_controllers(program.core(), &checked)?;
    if !checked.enabled("WebhookFramework") {
        return Ok(program.manager().run(stop).await?);
    }
    let (server, evaluator) = webhook_server(environment, &mut program, &checked)?;
    let mut manager = program.manager();
    evaluator.connect(Arc::new(manager.api().clone()));
    server.run_in(&mut manager)?;
    Ok(manager.run(stop).await?)
}

/// The webhook server with every handler whose gate is on.
fn webhook_server(
    environment: koord_webhook_server::Environment,
    program: &mut Program,
    checked: &Checked,
) -> anyhow::Result<(koord_webhook_server::Server, Arc<QuotaEvaluator>)> {
    // Waiting for a cache is between machines, whose time is real.
    let clock = SystemClock::shared();
    let counters = koord_webhook_server::Metrics::register(program.metrics())?;
    let gates = program.gates().clone();
    let core = program.core();
    let ctx =
        Arc::new(koord_webhook_handlers::Ctx::watch(core, |gate| gates.enabled(gate), checked.webhook_settings()));
    let builder = koord_webhook_server::ServiceBuilder::new(counters, clock).traced(core.tracer().clone());
    let builder = koord_webhook_handlers::serve(builder, &ctx, |gate| gates.enabled(gate));
    let evaluator =
        QuotaEvaluator::new(ctx, checked.options.quota_retries(), core.random().clone(), core.guard().clone());
    let service = evaluator.serve(builder).build();
    let server = koord_webhook_server::Server::beside(core, environment, service)?;
    Ok((server, evaluator))
}
