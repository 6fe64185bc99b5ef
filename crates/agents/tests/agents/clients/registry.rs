//! Every row of the registry is complete, and reached by everything that is asked for all clients.

use std::collections::BTreeSet;

use serde_json::json;
use tribunal_agents::{
    analysis::OutputShape,
    clients::{self, AGENT_CLIENT_IDS, AgentClient, CLIENTS, HookFile, UnknownClient},
    driver::{DRIVER_NAMES, DrivenAgent, FinishedProcess, LaunchEnv, LaunchRequest, LocalClock, SessionMode},
    hook::{HookAnswer, HookClient, HookEvent, HookInput, install},
};
use tribunal_engine::ids::Key;
use tribunal_workflows::{
    runs::settings::{AgentSpec, DriverSpec},
    tasks::{
        client::{ClientSpec, JobKind},
        purpose::{AgentAccess, ExpectedAnswer},
    },
};

fn build_agent(client_id: &str) -> AgentSpec {
    AgentSpec::new("mine", DriverSpec::Client(ClientSpec::new(client_id)))
}

fn build_request(task_key: &Key) -> LaunchRequest<'_> {
    LaunchRequest {
        task_key,
        prompt: "Look at it.".into(),
        is_command: false,
        expects: ExpectedAnswer::Findings,
        job: JobKind::Review,
        access: AgentAccess::Read,
        size: None,
        budget: None,
        is_sandboxed: false,
        secret_variables: &[],
        scratch_dir: std::path::Path::new("/beside"),
        session_mode: SessionMode::New,
    }
}

#[test]
fn every_client_has_a_unique_name_and_at_least_one_side() {
    let mut known_names = BTreeSet::from(["command", "replay"]);
    for coding_client in CLIENTS {
        for client_name in [coding_client.id].iter().chain(coding_client.aliases) {
            assert!(known_names.insert(client_name), "`{client_name}` means two things");
            assert_eq!(clients::find_client(client_name), Some(coding_client), "{client_name}");
            assert_eq!(clients::canonical_id(client_name), coding_client.id);
        }
        assert!(!coding_client.name.is_empty() && !coding_client.program.is_empty(), "{}", coding_client.id);
        assert!(
            coding_client.agent_facts.is_some()
                || coding_client.session_hooks.is_some()
                || coding_client.output_format.is_some(),
            "{} can do nothing",
            coding_client.id
        );
    }
    assert_eq!(clients::canonical_id("unknown-client"), "unknown-client");
}

#[test]
fn every_client_with_a_driver_is_in_the_settings_and_can_be_launched_and_decoded() {
    let client_ids: Vec<&str> = AgentClient::all().map(|agent_client| agent_client.id).collect();
    assert_eq!(client_ids, AGENT_CLIENT_IDS);
    assert_eq!(DRIVER_NAMES[..2], ["command", "replay"]);
    assert_eq!(DRIVER_NAMES[2..], client_ids);
    let local_clock = LocalClock { now_ms: 0, time_zone: jiff::tz::TimeZone::UTC };
    for agent_client in AgentClient::all() {
        let agent_facts = agent_client.facts;
        let fact_texts = [
            agent_facts.vendor,
            agent_facts.install_hint,
            agent_facts.sign_in_hint,
            agent_facts.client_files.settings_file,
            agent_facts.client_files.credentials_file,
        ];
        assert!(fact_texts.iter().all(|text| !text.is_empty()), "{}", agent_client.id);
        assert!(!agent_facts.abilities.is_empty() && !agent_facts.version_args.is_empty(), "{}", agent_client.id);
        for key_variable in agent_facts.key_variables {
            assert!(
                agent_client.variables.vendor_credentials.contains(&key_variable.name),
                "{} of {} would leak",
                key_variable.name,
                agent_client.id
            );
        }
        let driven_agent = DrivenAgent::new(build_agent(agent_client.id)).unwrap();
        assert_eq!(driven_agent.client(), Some(agent_client));
        let task_key = Key::new("round-1/ask");
        let agent_launch = driven_agent.build_launch(build_request(&task_key), &LaunchEnv::default());
        assert_eq!(agent_launch.program, agent_client.program);
        for other_client in CLIENTS.iter().filter(|other_client| other_client.id != agent_client.id) {
            let is_withheld = |variable_name: &&str| {
                agent_launch.removed_variables.iter().any(|removed_variable| removed_variable == variable_name)
            };
            assert!(
                other_client.variables.vendor_credentials.iter().all(is_withheld),
                "{} to {}",
                other_client.id,
                agent_client.id
            );
        }
        assert!(
            !agent_launch
                .removed_variables
                .iter()
                .any(|name| agent_client.variables.vendor_credentials.contains(&name.as_str()))
        );
        let finished_process = FinishedProcess {
            exit_code: Some(1),
            stdout: "",
            stderr: "no",
            clock: &local_clock,
            session_mode: SessionMode::New,
        };
        assert!(
            driven_agent.decode_output(&finished_process).fault.is_some(),
            "{} says nothing went wrong",
            agent_client.id
        );
    }
}

#[test]
fn an_unknown_client_is_an_error_and_never_another_client() {
    let unknown_client = DrivenAgent::new(build_agent("unknown-client")).unwrap_err();
    assert_eq!(unknown_client, UnknownClient { id: "unknown-client".into() });
    let known_ids = AGENT_CLIENT_IDS.join(", ");
    assert_eq!(unknown_client.to_string(), format!("unknown client `unknown-client` (known: {known_ids})"));
    // The same holds for a client without a driver and for another name of a client: journals contain ids.
    let without_driver = CLIENTS
        .iter()
        .filter(|coding_client| coding_client.agent_facts.is_none())
        .map(|coding_client| coding_client.id);
    for client_id in without_driver.chain(["claude", ""]) {
        assert!(DrivenAgent::new(build_agent(client_id)).is_err(), "{client_id}");
    }
    let journal_json = json!({"name": "mine", "driver": "client", "client": "unknown-client", "model": "m"});
    let agent_spec: AgentSpec = serde_json::from_value(journal_json.clone()).unwrap();
    assert_eq!(serde_json::to_value(&agent_spec).unwrap(), journal_json);
    assert!(DrivenAgent::new(agent_spec).is_err());
}

#[test]
fn every_client_with_hooks_has_events_a_hook_file_and_answers() {
    for hook_client in HookClient::all() {
        let client_events = install::supported_events(hook_client);
        assert!(client_events.iter().any(|(event, _)| *event == HookEvent::Stop), "{hook_client:?}");
        let hook_file_text = install::render_hook_file(hook_client, &install::HookProgram::ByName);
        for (hook_event, event_name) in &client_events {
            let hook_call = format!("hook {} --client {}", hook_event.name(), hook_client.client_id());
            assert!(
                hook_file_text.contains(&hook_call) && hook_file_text.contains(event_name),
                "{hook_client:?} {event_name}"
            );
        }
        match hook_client.hooks.hook_file(false) {
            HookFile::Shared(file_path) => assert!(!file_path.starts_with(['/', '~']), "{file_path}"),
            HookFile::Own(file_path) => assert!(file_path.contains("tribunal"), "{file_path}"),
            HookFile::User(file_path) => assert!(file_path.starts_with("~/"), "{file_path}"),
        }
        let stop_input = HookInput::parse(hook_client, HookEvent::Stop, br#"{"session_id": "s"}"#).unwrap();
        assert_eq!(stop_input.session_id, "s");
        let rendered_refusal =
            HookAnswer::Refuse { reason: "R".into(), user_message: None }.render(hook_client, HookEvent::Stop);
        assert!(rendered_refusal.contains("\"R\""), "{hook_client:?} cannot be refused a stop: {rendered_refusal}");
    }
}

#[test]
fn every_output_format_is_detected_by_its_unique_types() {
    for output_format in CLIENTS.iter().filter_map(|coding_client| coding_client.output_format) {
        for unique_type in output_format.unique_types {
            let json_line = json!({"type": unique_type}).to_string();
            assert_eq!(OutputShape::detect(&json_line).name(), output_format.name, "{unique_type}");
        }
    }
}
