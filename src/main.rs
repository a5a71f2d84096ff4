//! The program: everything it does is in `cli`.

fn main() -> std::process::ExitCode {
    countersign::cli::run()
}
