//! What `tribunal doctor` reports about the real clients. It costs nothing: no model is asked.

use serde_json::Value;

use crate::common::{Client, ClientTestbed, str_field};

fn find_client_row(document: &Value, client: Client) -> &Value {
    let client_rows = document["clients"].as_array().unwrap();
    client_rows.iter().find(|client_row| client_row["id"] == client.agent_name()).unwrap()
}

fn run_doctor(testbed: &ClientTestbed, api_key: Option<&str>) -> (Option<i32>, Value) {
    let mut command = testbed.tribunal_command(&["doctor", "--json"]);
    for variable_name in ["ANTHROPIC_API_KEY", "CODEX_API_KEY"] {
        match api_key {
            Some(api_key) => command.env(variable_name, api_key),
            None => command.env_remove(variable_name),
        };
    }
    let output = command.output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn installed_clients_are_known_by_version_and_sign_in() {
    let testbed = ClientTestbed::new(&Client::ALL, []);
    // An empty configuration takes away the test server, so that the sign-in is judged as it is for a user.
    testbed.sandbox.write_file("../home/codex/config.toml", "");
    for (api_key, expected_code, expected_state) in [(None, 5, "not signed in"), (Some("sk-test"), 0, "ready")] {
        let (exit_code, document) = run_doctor(&testbed, api_key);
        assert_eq!(exit_code, Some(expected_code), "{document:#}");
        for (tested_client, version) in [(Client::Claude, "2.1.325"), (Client::Codex, "0.166.0")] {
            let client_row = find_client_row(&document, tested_client);
            assert_eq!(
                (str_field(client_row, "version"), str_field(client_row, "state")),
                (version, expected_state),
                "{client_row:#}"
            );
            assert_eq!(str_field(client_row, "path"), tested_client.program_path().to_str().unwrap());
        }
    }
    assert_eq!(testbed.server.request_log().requests.len(), 0);
}
