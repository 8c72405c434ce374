#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fleet::{Part, from_hf};
use plimsoll_memory::{Format, KvLayout, Placement, weights};
use plimsoll_units::Tokens;

fuzz_target!(|text: &str| {
    match from_hf(text) {
        Ok(model) => {
            assert!(model.parameters_active() <= model.parameters(Part::Text));
            for placement in [Placement::single(), Placement { tensor: 8, pipeline: 2, expert: 8, context: 2 }] {
                for format in [Format::Bf16, Format::Fp8Block, Format::Int4, Format::Mxfp4, Format::Nvfp4] {
                    let _ = weights(&model, &placement, format, true);
                }
                for state_blocks in [None, Some(4)] {
                    if let Ok(layout) = KvLayout::of(&model, &placement, 2, Tokens::new(16), state_blocks) {
                        let _ = layout.blocks_of(Tokens::new(u64::MAX), Tokens::new(u64::MAX));
                    }
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
