//! What `tribunal doctor` reports about the real clients. It costs nothing: no model is asked.

use serde_json::Value;

use crate::common::{Bench, Client, word};

fn client(document: &Value, client: Client) -> &Value {
    let all = document["clients"].as_array().unwrap();
    all.iter().find(|known| known["id"] == client.agent()).unwrap()
}

fn asked(bench: &Bench, key: Option<&str>) -> (Option<i32>, Value) {
    let mut command = bench.command(&["doctor", "--json"]);
    for name in ["ANTHROPIC_API_KEY", "CODEX_API_KEY"] {
        match key {
            Some(key) => command.env(name, key),
            None => command.env_remove(name),
        };
    }
    let output = command.output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn installed_clients_are_known_by_version_and_sign_in() {
    let bench = Bench::new(&Client::ALL, []);
    // An empty configuration takes away the test server, so that the sign-in is judged as it is for a user.
    bench.sandbox.write("../home/codex/config.toml", "");
    for (key, code, state) in [(None, 5, "not signed in"), (Some("sk-test"), 0, "ready")] {
        let (ended, document) = asked(&bench, key);
        assert_eq!(ended, Some(code), "{document:#}");
        for (which, version) in [(Client::Claude, "2.1.325"), (Client::Codex, "0.166.0")] {
            let known = client(&document, which);
            assert_eq!((word(known, "version"), word(known, "state")), (version, state), "{known:#}");
            assert_eq!(word(known, "path"), which.program().to_str().unwrap());
        }
    }
    assert_eq!(bench.server.tally().requests.len(), 0);
}
