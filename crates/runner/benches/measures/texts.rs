//! Measures how fast texts are masked and compared.

use std::hint::black_box;

use tribunal_runner::masking::Masker;
use tribunal_testkit::SAMPLE_JOURNAL;
use tribunal_workflows::tasks::output_similarity::compare_outputs;

use crate::{BenchResult, MeasureSizes, cpu::CpuTime, print_figure};

const BYTES_PER_MEGABYTE: f64 = 1e6;

/// Returns a little more than so much of typical agent output: prose, code, JSON, and here and there something to be masked.
fn sample_output(min_bytes: usize) -> String {
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let mut output_text = String::new();
    while output_text.len() < min_bytes {
        for (number, line) in SAMPLE_JOURNAL.replace("\\n", "\n").lines().enumerate() {
            output_text.push_str(line);
            output_text.push('\n');
            if number % 100 == 0 {
                output_text.push_str(&format!("export GITHUB_TOKEN={token}\n"));
            }
        }
    }
    output_text
}

pub fn measure_masking(sizes: MeasureSizes) -> BenchResult<()> {
    let text = sample_output(sizes.text_bytes);
    let masker = Masker::new([("API_TOKEN", "correct-horse-battery-staple")]);
    if !masker.mask(&text).contains("[masked:") {
        return Err("nothing was masked: this measures nothing".into());
    }
    let cpu_before = CpuTime::measure_now()?;
    for _ in 0..sizes.masked_texts {
        black_box(masker.mask(black_box(&text)));
    }
    let spent_ms = CpuTime::measure_now()?.time_since(cpu_before).own_ms;
    print_figure("masking", spent_ms / ((sizes.masked_texts * text.len()) as f64 / BYTES_PER_MEGABYTE))
}

/// Compares pairs of long texts: nearly equal ones, entirely different ones, and some that are hard to align.
pub fn measure_loop_detection(sizes: MeasureSizes) -> BenchResult<()> {
    let output = sample_output(sizes.text_bytes);
    let words = |step: usize| -> String {
        (0..sizes.text_bytes / 4).map(|number| ["one ", "two ", "six "][number * step / 7 % 3]).collect()
    };
    let edited: String = output
        .lines()
        .enumerate()
        .map(|(number, line)| if number % 30 == 7 { "something else now\n".into() } else { format!("{line}\n") })
        .collect();
    let backwards: String = output.lines().rev().map(|line| format!("{line}\n")).collect();
    let mut worst: f64 = 0.0;
    for (first_text, second_text) in
        [(&output, &edited), (&output, &backwards), (&words(3), &words(5)), (&output, &output.replace('e', "E"))]
    {
        let cpu_before = CpuTime::measure_now()?;
        for _ in 0..sizes.compared_pairs {
            black_box(compare_outputs(black_box(first_text), black_box(second_text)));
        }
        worst = worst.max(CpuTime::measure_now()?.time_since(cpu_before).own_ms / sizes.compared_pairs as f64);
    }
    print_figure("loops-kilobytes", (output.len() >> 10) as f64)?;
    print_figure("loops", worst)
}
