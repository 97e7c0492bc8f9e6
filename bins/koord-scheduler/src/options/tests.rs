use super::*;

fn parse(line: &str) -> Result<Checked, String> {
    let arguments = std::iter::once("koord-scheduler").chain(line.split_whitespace()).map(str::to_owned);
    let checked = Options::from_arguments(arguments).and_then(Options::check);
    checked.map_err(|error| error.render().to_string())
}

#[test]
fn the_defaults_are_the_originals() {
    let Checked { options, traces, .. } = parse("").unwrap();
    assert_eq!((options.listen().unwrap().address.to_string().as_str(), traces), ("0.0.0.0:10251", None));
    assert!(!options.insecure_debug, "everybody can reach that port");
    assert_eq!(options.pod_max_in_unschedulable_pods_duration, Duration::from_mins(5));
    let monitoring = (options.scheduler_monitor_period, options.scheduling_timeout);
    assert_eq!(monitoring, (Duration::from_secs(10), Duration::from_secs(30)));
    let mut document = json!({});
    options.apply_to(&mut document, true);
    assert_eq!(document, json!({"clientConnection": {"kubeconfig": "", "qps": 50.0, "burst": 100}}));
}

#[test]
fn the_arguments_of_the_deployment_are_taken() {
    let line =
        "--port=10251 --authentication-skip-lookup=true --v=4 --feature-gates= --config=/config/koord-scheduler.config";
    let Checked { options, .. } = parse(line).unwrap();
    assert_eq!(options.config, Some("/config/koord-scheduler.config".into()));
    assert_eq!(options.log_filter(), "warn,h2=error,kube_client::client::builder=off,koord=debug");
}

#[test]
fn every_flag_of_the_original_is_taken() {
    let all = "--address=127.0.0.1 --port=0 -s3 -f -d --debug-diagnosis-blocking --async-log --async-log-queue-length=9 --controller-plugins=*,-Reservation \
        --enable-network-topology-manager --scheduler-monitor-period=10s --scheduling-timeout 30s \
        --enable-workload-auditor=false --workload-auditor-victim-deleting-retries=3 --sync-hard-timeout=1m \
        --secure-port=10259 --bind-address 0.0.0.0 --authentication_kubeconfig=x --authorization-kubeconfig x --profiling \
        --kube-api-qps=20 --kube-api-burst=30 --kube-api-content-type=json --leader-elect --logging-format=text \
        --pod-max-in-unschedulable-pods-duration=1m --tls-cert-file=x --tls-private-key-file=y --master=http://localhost --write-config-to=x";
    let Checked { options, .. } = parse(all).unwrap();
    let secure = options.secure(TlsPolicy::default()).unwrap();
    assert_eq!((options.listen(), secure.address.to_string().as_str()), (None, "0.0.0.0:10259"));
    assert!(options.controllers().runs("Coscheduling") && !options.controllers().runs("Reservation"));
    let files = secure.files.map(|files| (files.certificate, files.key));
    assert_eq!((files, secure.is_chosen), (Some(("x".into(), "y".into())), true));
    assert_eq!((options.debug_scores, options.debug_filters), (3, true));
}

#[test]
fn clients_are_known_as_the_flags_say() {
    let secure = |line: &str| {
        let Checked { options, tls, .. } = parse(line).unwrap();
        options.secure(tls.policy).unwrap()
    };
    // How many versions of TLS are spoken.
    let versions = |secure: &SecurePort| {
        let policy = format!("{:?}", secure.tls);
        ["TLSv1_2", "TLSv1_3"].into_iter().filter(|version| policy.contains(version)).count()
    };
    let none = secure("--requestheader-allowed-names=front --tls-min-version=VersionTLS12");
    let spoken = versions(&none);
    assert_eq!((none.client_authority, none.front_proxy, none.named.len(), spoken), (None, None, 0, 2));
    let all = secure(
        "--client-ca-file=a --requestheader-client-ca-file=b --requestheader-allowed-names=front,back --requestheader-uid-headers=x-uid \
         --requestheader-username-headers= --requestheader-group-headers=g,h --requestheader-extra-headers-prefix e- \
         --tls-sni-cert-key=c,k --tls-sni-cert-key=d,l:one,two --tls-min-version=VersionTLS13",
    );
    let spoken = versions(&all);
    assert_eq!((all.client_authority, spoken), (Some("a".into()), 1));
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let expected = koord_program::serving::FrontProxy {
        authority: "b".into(),
        names: texts(&["front", "back"]),
        username_headers: Vec::new(),
        uid_headers: texts(&["x-uid"]),
        group_headers: texts(&["g", "h"]),
        extra_prefixes: texts(&["e-"]),
    };
    assert_eq!(all.front_proxy, Some(expected));
    let named: Vec<usize> = all.named.iter().map(|named| named.names.len()).collect();
    assert_eq!(named, [0, 2]);
    let by_default = secure("--requestheader-client-ca-file=b").front_proxy.unwrap();
    assert_eq!((by_default.username_headers, by_default.uid_headers), (texts(&["x-remote-user"]), Vec::new()));
    assert!(parse("--requestheader-allowed-names=a,,b").unwrap_err().contains("requestheader-allowed-names"));
    assert!(parse("--tls-sni-cert-key=c").unwrap_err().contains("expected comma separated"));
}

#[test]
fn http2_is_served_unless_a_flag_says_otherwise() {
    let secure = |line: &str| {
        let Checked { options, tls, .. } = parse(line).unwrap();
        let secure = options.secure(tls.policy).unwrap();
        (format!("{:?}", secure.tls).contains("has_http2: true"), secure.streams_max)
    };
    assert_eq!(secure(""), (true, None));
    assert_eq!(secure("--disable-http2-serving"), (false, None));
    assert_eq!(secure("--disable-http2-serving=false --http2-max-streams-per-connection=7"), (true, Some(7)));
}

#[test]
fn a_flag_that_asks_for_what_does_not_happen_is_named_with_the_reason() {
    let named = |line: &str| {
        let without_effect = parse(line).unwrap().options.without_effect;
        without_effect.into_iter().map(|(flag, why)| format!("{flag}: {why}")).collect::<Vec<_>>()
    };
    let anyway = "--authentication-skip-lookup=true --logging-format=text --emulation-forward-compatible=false --contention-profiling=false \
        --kube-api-content-type=application/json --cert-dir= --enable-network-topology-manager --permit-port-sharing=false";
    assert_eq!(named(anyway), [""; 0]);
    let found = named("--min-compatibility-version=1.33 --emulation-forward-compatible --cert-dir=/x -d --async-log");
    assert_eq!(found.len(), 5, "{found:#?}");
    for (flag, word) in [
        ("cert-dir", "in memory"),
        ("min-compatibility-version", "no earlier version is emulated"),
        ("emulation-forward-compatible", "no earlier version is emulated"),
        ("async-log", "written at once"),
        ("debug-diagnosis", "koordctl why"),
    ] {
        assert!(
            found.iter().any(|line| line.starts_with(&format!("{flag}: ")) && line.contains(word)),
            "{flag}: {found:#?}"
        );
    }
}

#[test]
fn help_and_version_are_asked_for_as_in_the_original() {
    assert!(parse("-h").unwrap_err().contains("--secure-port"));
    assert_eq!(parse("").unwrap().options.version, ShownVersion::Nothing);
    assert_eq!(parse("--version").unwrap().options.version, ShownVersion::Version);
    assert_eq!(parse("--version=raw").unwrap().options.version, ShownVersion::Raw);
    assert!(parse("--version=1.2").unwrap_err().contains("raw"));
}

#[test]
fn workloads_are_audited_as_the_flags_say() {
    assert_eq!(parse("--workload-auditor-victim-deleting-retries=9").unwrap().auditor, None);
    let defaults = parse("--enable-workload-auditor").unwrap().auditor.unwrap();
    assert_eq!(defaults, AuditorSettings::default());
    let line = "--enable-workload-auditor=true --workload-auditor-metric-labels=quota=a/b \
        --workload-auditor-victim-reschedule-duration=1s --workload-auditor-victim-deletion-duration=2s \
        --workload-auditor-victim-deleting-retries=3 --workload-auditor-scheduling-event-interval=1m30s";
    let AuditorSettings { labels, limits } = parse(line).unwrap().auditor.unwrap();
    assert_eq!(labels, [("quota".to_owned(), "a/b".to_owned())]);
    let seconds = [limits.reschedule, limits.deletion, limits.interval].map(|limit| limit.as_secs());
    assert_eq!((seconds, limits.retries), ([1, 2, 90], 3));
    let wrong = parse("--workload-auditor-metric-labels=quota").unwrap_err();
    assert!(wrong.contains("--workload-auditor-metric-labels") && wrong.contains("quota_name=quota."), "{wrong}");
    let wrong = parse("--workload-auditor-victim-deletion-duration=30").unwrap_err();
    assert!(wrong.contains("--workload-auditor-victim-deletion-duration") && wrong.contains("missing unit"));
}

#[test]
fn flags_of_leader_election_count_over_the_file_and_a_kubeconfig_where_it_names_none() {
    let Checked { options, .. } =
        parse("--leader-elect=false --leader-elect-resource-name=mine --kube-api-qps=1 --kubeconfig=k").unwrap();
    let mut document = json!({"leaderElection": {"leaderElect": true, "resourceNamespace": "ns"}});
    options.apply_to(&mut document, false);
    let expected = json!({"leaderElect": false, "resourceName": "mine", "resourceNamespace": "ns"});
    assert_eq!(document, json!({"leaderElection": expected, "clientConnection": {"kubeconfig": "k"}}));
    let mut document = json!({"clientConnection": {"kubeconfig": "of-the-file"}});
    options.apply_to(&mut document, false);
    assert_eq!(document["clientConnection"], json!({"kubeconfig": "of-the-file"}));
}

#[test]
fn profiling_is_the_flags_where_there_is_no_file() {
    let document = |line: &str, without_file| {
        let mut document = json!({});
        parse(line).unwrap().options.apply_to(&mut document, without_file);
        document["enableProfiling"].clone()
    };
    assert_eq!((document("", true), document("--profiling", true)), (Value::Null, json!(true)));
    assert_eq!(
        (document("--profiling=false", true), document("--profiling=false", false)),
        (json!(false), Value::Null)
    );
}

#[test]
fn a_wrong_flag_says_what_would_be_right() {
    assert!(parse("--confi=x").unwrap_err().contains("'--config'"));
    assert!(parse("--preset=gang").unwrap_err().contains("'gang-only'"));
    assert!(parse("--preset=gpu --config=x").unwrap_err().contains("cannot be used with"));
    assert!(parse("--tls-cert-file=x").unwrap_err().contains("--tls-private-key-file must name its key"));
    assert!(parse("--tls-min-version=1.3").unwrap_err().contains("VersionTLS13"));
    assert!(parse("--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA").unwrap_err().contains("none of TLS_RSA_WITH_RC4"));
    let line = "--tls-min-version=VersionTLS12 --tls-cipher-suites=TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305,TLS_AES_128_GCM_SHA256,TLS_X";
    assert_eq!(parse(line).unwrap().tls.unserved_suites, ["TLS_X"]);
    let error = parse("--otlp-endpoint=collector:4318").unwrap_err();
    assert!(error.contains("--otlp-endpoint: \"collector:4318\" is no address such as"), "{error}");
    assert!(parse("--otlp-endpoint=http://collector:4318").unwrap().traces.is_some());
    assert!(parse("--leader-elect-lease-duration=15").unwrap_err().contains("missing unit"));
    assert!(parse("--leader-elect-resource-lock=endpoints").unwrap_err().contains("leases"));
    assert!(parse("--feature-gates=SyncBarier=true").unwrap_err().contains("did you mean SyncBarrier?"));
}
