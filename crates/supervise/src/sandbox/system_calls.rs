//! System calls that Landlock does not know, and with which a process reaches others of the same user: limits of their resources,
//! and input for their terminals. They fail as if permission was missing. Everything else is allowed.

use seccompiler::sock_filter;

/// Where the kernel puts what is known of a call. Arguments have two halves.
const NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;
const fn argument_offset(index: u32) -> u32 {
    16 + 8 * index
}

const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const FAIL_WITHOUT_PERMISSION: u32 = 0x0005_0000 | 1;

/// Types a character into a terminal, and does so with the selection of a console.
const TYPE_INTO_TERMINAL: u32 = 0x5412;
const CONSOLE_COMMAND: u32 = 0x541c;
/// Set in the numbers of calls of the x32 interface.
const X32_BIT: u32 = 0x4000_0000;

/// One interface of the kernel with the numbers of the calls.
struct CallInterface {
    architecture: u32,
    set_limits: u32,
    /// A processor with two interfaces has two numbers.
    device_commands: [u32; 2],
}

const INTERFACES: [CallInterface; 5] = [
    // x86-64 and x32, i386, AArch64, Arm, RISC-V.
    CallInterface { architecture: 0xc000_003e, set_limits: 302, device_commands: [16, 514] },
    CallInterface { architecture: 0x4000_0003, set_limits: 340, device_commands: [54, 54] },
    CallInterface { architecture: 0xc000_00b7, set_limits: 261, device_commands: [29, 29] },
    CallInterface { architecture: 0x4000_0028, set_limits: 369, device_commands: [54, 54] },
    CallInterface { architecture: 0xc000_00f3, set_limits: 261, device_commands: [29, 29] },
];

/// Builds the filter.
pub(super) fn build_filter() -> Vec<sock_filter> {
    let mut filter = vec![load(ARCHITECTURE_OFFSET)];
    for interface in &INTERFACES {
        let rules = build_rules(interface);
        // A number that does not fit would be a filter for another interface.
        let skipped = u8::try_from(rules.len()).unwrap_or(u8::MAX);
        filter.push(jump_if_equal(interface.architecture, 0, skipped));
        filter.extend(rules);
    }
    filter.push(give_result(ALLOW));
    filter
}

fn build_rules(interface: &CallInterface) -> Vec<sock_filter> {
    let [first_command, second_command] = interface.device_commands;
    vec![
        load(NUMBER_OFFSET),
        sock_filter { code: AND, jt: 0, jf: 0, k: !X32_BIT },
        jump_if_equal(interface.set_limits, 0, 8),
        // Limits of the own process, by the number zero, may be set, and all limits may be read.
        load(argument_offset(0)),
        jump_if_equal(0, 4, 0),
        load(argument_offset(2)),
        jump_if_equal(0, 0, 3),
        load(argument_offset(2) + 4),
        jump_if_equal(0, 0, 1),
        give_result(ALLOW),
        give_result(FAIL_WITHOUT_PERMISSION),
        jump_if_equal(first_command, 1, 0),
        jump_if_equal(second_command, 0, 3),
        load(argument_offset(1)),
        jump_if_equal(TYPE_INTO_TERMINAL, 2, 0),
        jump_if_equal(CONSOLE_COMMAND, 1, 0),
        give_result(ALLOW),
        give_result(FAIL_WITHOUT_PERMISSION),
    ]
}

fn load(offset: u32) -> sock_filter {
    sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: offset }
}

/// Skips so many steps if the loaded word is this one, and so many otherwise.
fn jump_if_equal(word: u32, skipped_if_equal: u8, skipped_otherwise: u8) -> sock_filter {
    sock_filter { code: JUMP_IF_EQUAL, jt: skipped_if_equal, jf: skipped_otherwise, k: word }
}

fn give_result(result: u32) -> sock_filter {
    sock_filter { code: RETURN, jt: 0, jf: 0, k: result }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter as the kernel would, for a call with three arguments.
    fn run_filter(architecture: u32, number: u32, arguments: [u64; 3]) -> u32 {
        let mut call_data = [number.to_le_bytes(), architecture.to_le_bytes(), [0; 4], [0; 4]].concat();
        arguments.iter().for_each(|argument| call_data.extend(argument.to_le_bytes()));
        let (filter, mut loaded, mut position) = (build_filter(), 0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = filter[position].clone();
            position += 1;
            match code {
                LOAD_WORD => {
                    let offset = k as usize;
                    loaded = u32::from_le_bytes(call_data[offset..offset + 4].try_into().unwrap());
                }
                AND => loaded &= k,
                JUMP_IF_EQUAL => position += usize::from(if loaded == k { jt } else { jf }),
                RETURN => return k,
                _ => panic!("{code}"),
            }
        }
    }

    #[test]
    fn limits_of_others_and_input_for_terminals_fail_on_every_interface() {
        for interface in &INTERFACES {
            let run = |number, arguments| run_filter(interface.architecture, number, arguments);
            assert_eq!(run(interface.set_limits, [0, 7, 0x1000]), ALLOW);
            assert_eq!(run(interface.set_limits, [99, 7, 0]), ALLOW, "they are only read");
            assert_eq!(run(interface.set_limits, [99, 7, 0x1000]), FAIL_WITHOUT_PERMISSION);
            assert_eq!(run(interface.set_limits, [99, 7, 0x1_0000_0000]), FAIL_WITHOUT_PERMISSION);
            for number in interface.device_commands {
                assert_eq!(run(number, [0, 0x5413, 0]), ALLOW);
                assert_eq!(run(number, [0, 0x5412, 0]), FAIL_WITHOUT_PERMISSION);
                assert_eq!(run(number, [0, 0xffff_ffff_0000_5412, 0]), FAIL_WITHOUT_PERMISSION);
                assert_eq!(run(number, [0, 0x541c, 0]), FAIL_WITHOUT_PERMISSION);
            }
            assert_eq!(run(1, [99, 0x5412, 7]), ALLOW);
        }
        assert_eq!(run_filter(0xc000_003e, 302 | X32_BIT, [99, 7, 1]), FAIL_WITHOUT_PERMISSION);
        assert_eq!(run_filter(0xc000_003e, 514 | X32_BIT, [0, 0x5412, 0]), FAIL_WITHOUT_PERMISSION);
        assert_eq!(run_filter(0x1234, 302, [99, 7, 1]), ALLOW, "an unknown interface is left alone");
    }
}
