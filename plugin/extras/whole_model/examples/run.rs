// Runs a native artifact on zeros: rustc --edition 2021 -L . -l model -C link-arg=-Wl,-rpath,'$ORIGIN' run.rs
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Tensor {
    name: *const c_char,
    dtype: *const c_char,
    rank: i32,
    shape: *const i64,
    size_bytes: i64,
}

extern "C" {
    fn model_input_count() -> i32;
    fn model_output_count() -> i32;
    fn model_input(index: i32) -> *const Tensor;
    fn model_output(index: i32) -> *const Tensor;
    fn model_create(weights: *const c_char, created: *mut *mut c_void) -> c_int;
    fn model_run(model: *mut c_void, inputs: *const *const c_void, outputs: *const *mut c_void) -> c_int;
    fn model_destroy(model: *mut c_void);
    fn model_error() -> *const c_char;
}

struct Model(*mut c_void);

impl Model {
    fn new() -> Result<Model, String> {
        let mut made = null_mut();
        match unsafe { model_create(null(), &mut made) } {
            0 => Ok(Model(made)),
            _ => Err(error()),
        }
    }

    /// Takes `&mut self`: one thread at a time runs an instance.
    fn run(&mut self, given: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
        let wanted = outputs();
        let mut made: Vec<Vec<u8>> = wanted.iter().map(|t| vec![0; t.size_bytes as usize]).collect();
        let inputs: Vec<_> = given.iter().map(|each| each.as_ptr().cast()).collect();
        let places: Vec<_> = made.iter_mut().map(|each| each.as_mut_ptr().cast()).collect();
        match unsafe { model_run(self.0, inputs.as_ptr(), places.as_ptr()) } {
            0 => Ok(made),
            _ => Err(error()),
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { model_destroy(self.0) }
    }
}

fn text(from: *const c_char) -> String {
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

fn error() -> String {
    text(unsafe { model_error() })
}

fn inputs() -> Vec<&'static Tensor> {
    unsafe { (0..model_input_count()).map(|i| &*model_input(i)).collect() }
}

fn outputs() -> Vec<&'static Tensor> {
    unsafe { (0..model_output_count()).map(|i| &*model_output(i)).collect() }
}

fn main() -> Result<(), String> {
    let given: Vec<Vec<u8>> = inputs().iter().map(|t| vec![0; t.size_bytes as usize]).collect();
    let made = Model::new()?.run(&given)?;
    for tensor in outputs() {
        println!("{} {} {}", text(tensor.name), text(tensor.dtype), tensor.size_bytes);
    }
    println!("{}", f32::from_ne_bytes(made[0][..4].try_into().unwrap()));
    Ok(())
}
