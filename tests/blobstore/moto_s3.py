"""moto_s3.py PORT BUCKET KEYS: serves S3 on 127.0.0.1:PORT by moto, with a bucket and one user, whose signatures are
checked. Writes the user's keys into the file KEYS, and then makes KEYS.ready."""
import logging
import pathlib
import sys
import time

import boto3
from moto import settings
from moto.core.authorization import ActionAuthenticatorMixin
from moto.server import ThreadedMotoServer

ALLOW_ALL = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'


def main():
    port, bucket, keys = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False).start()
    at = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1", "aws_access_key_id": "any",
          "aws_secret_access_key": "any"}
    boto3.client("s3", **at).create_bucket(Bucket=bucket)
    iam = boto3.client("iam", **at)
    iam.create_user(UserName="tests")
    iam.put_user_policy(UserName="tests", PolicyName="all", PolicyDocument=ALLOW_ALL)
    key = iam.create_access_key(UserName="tests")["AccessKey"]
    keys.write_text(f"[default]\naws_access_key_id = {key['AccessKeyId']}\n"
                    f"aws_secret_access_key = {key['SecretAccessKey']}\n")
    # From here on every request needs a valid signature.
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    ActionAuthenticatorMixin.request_count = 0
    pathlib.Path(f"{keys}.ready").touch()
    while True:
        time.sleep(3600)


main()
