//! Every row of the registry is complete, and reached by everything that is asked for all clients.

use std::collections::BTreeSet;

use serde_json::json;
use tribunal_agents::{
    analysis::Shape,
    answer::Wanted,
    clients::{self, AGENT_CLIENT_IDS, AgentClient, CLIENTS, Home, UnknownClient},
    driver::{Clock, DRIVER_NAMES, DrivenAgent, Finished, Order, Talk, Whereabouts},
    hook::{Answer, HookClient, HookEvent, Input, install},
};
use tribunal_core::{
    client::{ClientSpec, Job},
    ids::Key,
    settings::{AgentSpec, DriverSpec},
};

fn agent(id: &str) -> AgentSpec {
    AgentSpec::new("mine", DriverSpec::Client(ClientSpec::new(id)))
}

fn order(key: &Key) -> Order<'_> {
    Order {
        key,
        prompt: "Look at it.".into(),
        wanted: Wanted::Findings,
        job: Job::Review,
        size: None,
        budget: None,
        beside: std::path::Path::new("/beside"),
        talk: Talk::New,
    }
}

#[test]
fn a_row_has_a_name_of_its_own_and_at_least_one_side() {
    let mut words = BTreeSet::from(["command", "replay"]);
    for client in CLIENTS {
        for word in [client.id].iter().chain(client.aliases) {
            assert!(words.insert(word), "`{word}` means two things");
            assert_eq!(clients::named(word), Some(client), "{word}");
            assert_eq!(clients::canonical(word), client.id);
        }
        assert!(!client.name.is_empty() && !client.program.is_empty(), "{}", client.id);
        assert!(
            client.agent.is_some() || client.hooks.is_some() || client.output.is_some(),
            "{} can do nothing",
            client.id
        );
    }
    assert_eq!(clients::canonical("unknown-client"), "unknown-client");
}

#[test]
fn every_client_with_a_driver_is_a_driver_of_the_settings_and_can_be_launched_and_read() {
    let ids: Vec<&str> = AgentClient::all().map(|client| client.id).collect();
    assert_eq!(ids, AGENT_CLIENT_IDS);
    assert_eq!(DRIVER_NAMES[..2], ["command", "replay"]);
    assert_eq!(DRIVER_NAMES[2..], ids);
    let clock = Clock { now_ms: 0, zone: jiff::tz::TimeZone::UTC };
    for client in AgentClient::all() {
        let facts = client.agent;
        let texts =
            [facts.vendor, facts.install, facts.sign_in, facts.files.settings, facts.files.credentials];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}", client.id);
        assert!(!facts.abilities.is_empty() && !facts.version_args.is_empty(), "{}", client.id);
        for key in facts.keys {
            assert!(client.variables.secrets.contains(&key.name), "{} of {} would leak", key.name, client.id);
        }
        let driven = DrivenAgent::new(agent(client.id)).unwrap();
        assert_eq!(driven.client(), Some(client));
        let key = Key::new("round-1/ask");
        let launch = driven.launch(order(&key), &Whereabouts::default());
        assert_eq!(launch.program, client.program);
        for other in CLIENTS.iter().filter(|other| other.id != client.id) {
            let withheld = |name: &&str| launch.without.iter().any(|without| without == name);
            assert!(other.variables.secrets.iter().all(withheld), "{} to {}", other.id, client.id);
        }
        assert!(!launch.without.iter().any(|name| client.variables.secrets.contains(&name.as_str())));
        let finished = Finished { code: Some(1), stdout: "", stderr: "no", clock: &clock, talk: Talk::New };
        assert!(driven.decode(&finished).fault.is_some(), "{} says nothing went wrong", client.id);
    }
}

#[test]
fn a_client_that_is_not_known_is_an_error_and_never_another_one() {
    let unknown = DrivenAgent::new(agent("unknown-client")).unwrap_err();
    assert_eq!(unknown, UnknownClient { id: "unknown-client".into() });
    let known = AGENT_CLIENT_IDS.join(", ");
    assert_eq!(unknown.to_string(), format!("there is no client `unknown-client` here, only {known}"));
    // The same holds for a client without a driver and for another name of a client: journals contain ids.
    let without_driver = CLIENTS.iter().filter(|client| client.agent.is_none()).map(|client| client.id);
    for id in without_driver.chain(["claude", ""]) {
        assert!(DrivenAgent::new(agent(id)).is_err(), "{id}");
    }
    let journal = json!({"name": "mine", "driver": "client", "client": "unknown-client", "model": "m"});
    let spec: AgentSpec = serde_json::from_value(journal.clone()).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), journal);
    assert!(DrivenAgent::new(spec).is_err());
}

#[test]
fn every_client_with_hooks_has_moments_a_place_for_them_and_answers() {
    for client in HookClient::all() {
        let moments = install::moments(client);
        assert!(moments.iter().any(|(event, _)| *event == HookEvent::Stop), "{client:?}");
        let text = install::whole(client, &install::Program::Named);
        for (event, name) in &moments {
            let call = format!("hook {} --client {}", event.word(), client.word());
            assert!(text.contains(&call) && text.contains(name), "{client:?} {name}");
        }
        match client.hooks.home(false) {
            Home::Shared(path) => assert!(!path.starts_with(['/', '~']), "{path}"),
            Home::Own(path) => assert!(path.contains("tribunal"), "{path}"),
            Home::Person(path) => assert!(path.starts_with("~/"), "{path}"),
        }
        let stop = Input::read(client, HookEvent::Stop, br#"{"session_id": "s"}"#).unwrap();
        assert_eq!(stop.session, "s");
        let refused = Answer::Refuse { reason: "R".into(), say: None }.render(client, HookEvent::Stop);
        assert!(refused.contains("\"R\""), "{client:?} cannot be refused a stop: {refused}");
    }
}

#[test]
fn every_form_of_output_is_found_again_by_its_mark() {
    for format in CLIENTS.iter().filter_map(|client| client.output) {
        for mark in format.marks {
            let line = json!({"type": mark}).to_string();
            assert_eq!(Shape::of(&line).name(), format.name, "{mark}");
        }
    }
}
