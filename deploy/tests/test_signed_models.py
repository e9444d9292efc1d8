"""Versions that the reference tool of OpenSSF's model signatures has signed, and others."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from replicas import running, wait_for
from servers import REPOSITORY

pytest.importorskip("model_signing", reason="needs `pip install model-signing pyOpenSSL`")

MODELS = REPOSITORY / "models/registry"
SIGNED, UNSIGNED = "tile-iree-cpu", "layout-xla-cpu-sage"


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize("curve", ["prime256v1", "secp384r1"])
def test_a_signed_version_serves_and_an_unsigned_one_does_not(tmp_path, curve):
    key, public = tmp_path / "models.key", tmp_path / "models.pem"
    run("openssl", "ecparam", "-name", curve, "-genkey", "-noout", "-out", key)
    run("openssl", "ec", "-in", key, "-pubout", "-out", public)
    for model in (SIGNED, UNSIGNED):
        shutil.copytree(MODELS / model, tmp_path / "models" / model)
    [version] = (tmp_path / "models" / SIGNED).iterdir()
    sign = [sys.executable, "-m", "model_signing", "sign", "key", version]
    run(*sign, "--private_key", key, "--signature", version / "model.sig")
    settings = {"HLORANK_MODELS": tmp_path / "models", "HLORANK_MODELS_KEY": public}
    with running(1, tmp_path, **settings) as [replica]:
        rejected = 'reason="SIGNATURE_INVALID"'
        wait_for(
            "the unsigned version",
            lambda: replica.metric("hlorank_model_rejections_total", rejected) == 1,
        )
        serving = (f'model="{SIGNED}"', 'state="serving"')
        assert replica.metric("hlorank_model_versions", *serving) == 1
        assert replica.metric("hlorank_model_versions", 'state="serving"') == 1
